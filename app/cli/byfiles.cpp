// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/byfiles.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace klineage::cli {

void addFileWork(CLI::App &verb, FileWork &work)
{
    auto *ask = verb.add_option("--ask", work.ask, "Write prompts to this folder");
    auto *jobs = verb.add_option("--jobs", work.jobs, "Read the replies in this folder, print jobs");
    auto *import =
        verb.add_option("--import", work.import, "OUT DIR: the batch's output, and the folder")->expected(2);
    ask->excludes(jobs)->excludes(import);
    jobs->excludes(import);
}

tl::expected<BatchOutput, int> readBatch(const Session &session, const std::string &file)
{
    Result<BatchOutput> batch = readBatchOutput(file);
    if (!batch)
        return tl::unexpected(batch.error().code == ErrorCode::NotFound ? session.usage(batch.error().message)
                                                                        : session.fail(batch.error()));
    return std::move(*batch);
}

std::vector<gate::Trial> trialsOf(const BatchOutput &batch)
{
    std::vector<gate::Trial> trials;
    for (const BatchRecord &record : batch.records)
        trials.push_back(record.trial);
    return trials;
}

void printProblems(const BatchOutput &batch)
{
    for (const std::string &problem : batch.problems)
        std::fprintf(stderr, "klineage-cli: %s\n", problem.c_str());
}

void JobLines::add(const std::vector<lineage::RecordJob> &jobs)
{
    for (const lineage::RecordJob &job : jobs)
        m_lines.push_back(lineage::writeRecordJob(job));
}

nlohmann::json JobLines::json() const
{
    auto lines = nlohmann::json::array();
    for (const std::string &line : m_lines)
        lines.push_back(nlohmann::json::parse(line));
    return lines;
}

void JobLines::print() const
{
    for (const std::string &line : m_lines)
        std::printf("%s\n", line.c_str());
}

} // namespace klineage::cli
