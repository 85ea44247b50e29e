// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/poolbatch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace klineage::gate {

namespace {

/// The items, taken one by one by as many threads as there are jobs.
class Batch
{
public:
    Batch(const PoolBatch &batch, GatePool &pool, std::stop_token stop,
          const std::function<void(const std::string &)> &say, std::vector<BatchItem> items)
        : m_batch(batch)
        , m_pool(pool)
        , m_stop(std::move(stop))
        , m_say(say)
        , m_items(std::move(items))
    {}

    Result<PoolBatchSummary> run()
    {
        const auto begin = std::chrono::steady_clock::now();
        std::vector<std::jthread> others;
        const auto jobs = std::min(static_cast<std::size_t>(std::max(m_batch.jobs, 1)), m_items.size());
        for (std::size_t i = 1; i < jobs; ++i)
            others.emplace_back([this] { work(); });
        work();
        others.clear();
        m_summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!m_written)
            return tl::unexpected(m_written.error());
        return m_summary;
    }

private:
    void work()
    {
        for (std::size_t i = m_next++; i < m_items.size(); i = m_next++) {
            BatchItem &item = m_items[i];
            if (m_stop.stop_requested() || m_isBroken) {
                keep(item, fail(ErrorCode::Cancelled, "The batch was stopped."));
                continue;
            }
            const Status read = readTexts(item);
            keep(item, read ? m_pool.run(item.request, m_stop) : tl::unexpected(read.error()));
        }
    }

    void keep(const BatchItem &item, const Result<Trial> &trial)
    {
        const std::scoped_lock lock(m_filing);
        if (!trial && trial.error().code == ErrorCode::Cancelled) {
            ++m_summary.left;
            return;
        }
        if (Status written = appendToBatch(m_batch.out, item.id, trial); !written) {
            m_written = written;
            m_isBroken = true;
            return;
        }
        ++(trial ? m_summary.done : m_summary.failed);
        std::string line = batchReport(item.id, trial);
        if (trial && trial->environment.facts.contains("gate"))
            line += " [" + trial->environment.facts.at("gate") + "]";
        m_say(line);
    }

    const PoolBatch &m_batch;
    GatePool &m_pool;
    std::stop_token m_stop;
    const std::function<void(const std::string &)> &m_say;
    std::vector<BatchItem> m_items;
    std::atomic<std::size_t> m_next = 0;
    std::atomic<bool> m_isBroken = false;
    std::mutex m_filing; ///< of the file, the summary and m_say
    PoolBatchSummary m_summary;
    Status m_written;
};

} // namespace

Result<PoolBatchSummary> runPoolBatch(const PoolBatch &batch, GatePool &pool, const std::stop_token &stop,
                                      const std::function<void(const std::string &)> &say)
{
    auto items = readBatch(batch.in, batch.defaults);
    if (!items)
        return tl::unexpected(items.error());
    const auto finished = finishedOfBatch(batch.out);
    if (!finished)
        return tl::unexpected(finished.error());
    const std::size_t all = items->size();
    std::erase_if(*items, [&](const BatchItem &item) { return finished->contains(item.id); });
    const auto skipped = static_cast<int>(all - items->size());
    auto summary = Batch(batch, pool, stop, say, std::move(*items)).run();
    if (summary)
        summary->skipped = skipped;
    return summary;
}

} // namespace klineage::gate
