// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/pool/fakegate.h"

#include "core/base/random.h"
#include "core/files/sha256.h"
#include "core/files/utctime.h"
#include "core/trial/trial.h"
#include "tests/paths.h"

#include <csignal>
#include <fstream>

namespace klineage::gate::test {

namespace fs = std::filesystem;

void writeText(const fs::path &path, const std::string &text)
{
    std::ofstream(path) << text;
}

FakeGateFolder::FakeGateFolder(fs::path folder)
    : m_folder(std::move(folder))
{
    ::signal(SIGPIPE, SIG_IGN); // Qt Test takes it for a crash
    fs::create_directories(m_folder);
    Trial trial;
    trial.id = randomId();
    trial.workload = "softmax";
    trial.surface = kernel::Surface::OpenCl;
    trial.candidate = files::sha256Hex("text");
    trial.time = files::nowUtc();
    trial.environment.platform = "pocl";
    trial.environment.device = "fake";
    trial.verdict.status = VerdictStatus::Correct;
    trial.verdict.reason = "ok";
    writeText(m_folder / "trial.json", writeTrial(trial));
    writeText(program(), "#!/bin/sh\nexec /bin/sh "
                             + shellQuoted(klineage::test::sourcePath("/tests/core/pool/fakegate.sh")) + " "
                             + shellQuoted(m_folder.string()) + " \"$@\"\n");
    fs::permissions(program(), fs::perms::owner_all);
}

std::vector<std::pair<std::string, int>> FakeGateFolder::begun() const
{
    std::vector<std::pair<std::string, int>> lines;
    std::ifstream log(m_folder / "log");
    int process = 0;
    for (std::string name; log >> name >> process;)
        lines.emplace_back(name, process);
    return lines;
}

std::vector<std::string> FakeGateFolder::prepared() const
{
    std::vector<std::string> names;
    std::ifstream told(m_folder / "prepared");
    for (std::string name; told >> name;)
        names.push_back(name);
    return names;
}

GateRequest fakeRequest(const std::string &name)
{
    GateRequest request;
    request.workloadDirectory = klineage::test::sourcePath("/workloads/softmax");
    request.candidateText = "text";
    request.candidateName = name;
    return request;
}

Asked::Asked(GatePool &pool, GateRequest request)
    : m_thread([this, &pool, request = std::move(request)] {
        auto trial = pool.run(request, m_stop.get_token(), [this](const GateProgress &progress) {
            const std::scoped_lock lock(m_mutex);
            m_told.push_back(progress.text);
        });
        const std::scoped_lock lock(m_mutex);
        m_result = std::move(trial);
    })
{}

Asked::~Asked()
{
    m_stop.request_stop();
}

bool Asked::isOver() const
{
    const std::scoped_lock lock(m_mutex);
    return m_result.has_value();
}

Result<Trial> Asked::result()
{
    if (m_thread.joinable())
        m_thread.join();
    return *m_result;
}

std::string Asked::problem() const
{
    const std::scoped_lock lock(m_mutex);
    return m_result && !*m_result ? m_result->error().message + "\n" + m_result->error().detail : "";
}

bool Asked::wasTold(const std::string &part) const
{
    return told().find(part) != std::string::npos;
}

std::string Asked::told() const
{
    const std::scoped_lock lock(m_mutex);
    std::string all;
    for (const std::string &text : m_told)
        all += text + '\n';
    return all;
}

} // namespace klineage::gate::test
