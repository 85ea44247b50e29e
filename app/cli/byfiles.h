// SPDX-License-Identifier: GPL-3.0-or-later
//
// Verbs whose authors and devices meet only through files: prompts are written (--ask), replies become jobs for klineage-gate batch (--jobs), and
// what it printed is judged (--import).
#pragma once

#include "app/cli/batchrecord.h"
#include "app/cli/session.h"
#include "core/lineage/lineage.h"
#include "core/lineage/recordjobs.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace klineage::cli {

struct FileWork {
    std::string ask;                 ///< folder
    std::string jobs;                ///< folder
    std::vector<std::string> import; ///< the batch's output and the folder

    [[nodiscard]] bool isNothing() const { return ask.empty() && jobs.empty() && import.empty(); }
};

/// --ask, --jobs and --import, of which one at a time can be given.
void addFileWork(CLI::App &verb, FileWork &work);

/// What a batch printed; or the exit status, when the file cannot be read.
[[nodiscard]] tl::expected<BatchOutput, int> readBatch(const Session &session, const std::string &file);

[[nodiscard]] std::vector<gate::Trial> trialsOf(const BatchOutput &batch);

/// To the standard error.
void printProblems(const BatchOutput &batch);

/// What --jobs prints for klineage-gate batch.
class JobLines
{
public:
    void add(const std::vector<lineage::RecordJob> &jobs);
    [[nodiscard]] nlohmann::json json() const;
    void print() const;

private:
    std::vector<std::string> m_lines;
};

/// What every row of such work has.
template <typename Row>
[[nodiscard]] nlohmann::json fileRowJson(const Row &row)
{
    return {{"lineage", row.lineage},
            {"try", row.number},
            {"outcome", row.outcome},
            {"reason", row.reason},
            {"share", row.share ? nlohmann::json(*row.share) : nlohmann::json()},
            {"file", row.file.string()}};
}

/// The rows of what is done with each lineage, one after another; or the exit status.
template <typename Row>
[[nodiscard]] tl::expected<std::vector<Row>, int> rowsOfEach(
    const Session &session, const std::vector<lineage::Lineage> &lineages,
    const std::function<Result<std::vector<Row>>(const lineage::Lineage &)> &each)
{
    std::vector<Row> all;
    for (const lineage::Lineage &lineage : lineages) {
        Result<std::vector<Row>> rows = each(lineage);
        if (!rows)
            return tl::unexpected(session.fail(rows.error()));
        std::move(rows->begin(), rows->end(), std::back_inserter(all));
    }
    return all;
}

} // namespace klineage::cli
