// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/compileahead.h"

#include <algorithm>
#include <chrono>

namespace klineage::gate {

namespace {

constexpr double aheadLimitSeconds = 60;

} // namespace

CompileAhead::CompileAhead(std::vector<std::string> command, CompileCache cache)
    : m_compiler(std::move(command), std::move(cache))
{}

CompileAhead::~CompileAhead() = default; // the thread is stopped and joined first

void CompileAhead::add(Job job)
{
    {
        const std::lock_guard lock(m_mutex);
        const auto same = [&job](const Job &other) { return other.compiles(job.source, job.tunables); };
        if (m_off || (m_current && same(*m_current)) || std::any_of(m_waiting.begin(), m_waiting.end(), same))
            return;
        m_waiting.push_back(std::move(job));
        if (m_waiting.size() > mostWaiting)
            m_waiting.pop_front();
        if (!m_thread.joinable())
            m_thread = std::jthread([this](const std::stop_token &stop) { work(stop); });
    }
    m_wake.notify_all();
}

void CompileAhead::setTarget(const std::string &target)
{
    {
        const std::lock_guard lock(m_mutex);
        m_target = target;
    }
    m_wake.notify_all();
}

void CompileAhead::await(const std::string &source, const std::map<std::string, std::int64_t> &tunables,
                         double seconds, const std::stop_token &stop)
{
    std::unique_lock lock(m_mutex);
    std::erase_if(m_waiting, [&](const Job &job) { return job.compiles(source, tunables); });
    m_wake.wait_for(lock, stop, std::chrono::duration<double>(std::clamp(seconds, 0.0, aheadLimitSeconds)),
                    [&] { return !m_current || !m_current->compiles(source, tunables); });
}

void CompileAhead::work(const std::stop_token &stop)
{
    std::unique_lock lock(m_mutex);
    for (;;) {
        if (!m_wake.wait(lock, stop, [this] { return !m_waiting.empty() && !m_target.empty(); }))
            return;
        m_current = std::move(m_waiting.front());
        m_waiting.pop_front();
        const Job job = *m_current;
        const std::string target = m_target;
        lock.unlock();
        const auto output = m_compiler.compile({job.language, job.source, job.name, job.tunables, target},
                                               aheadLimitSeconds, stop);
        lock.lock();
        m_current.reset();
        if (!output && output.error().kind == FailureKind::Unavailable) {
            m_off = true;
            m_waiting.clear();
        }
        m_wake.notify_all();
    }
}

} // namespace klineage::gate
