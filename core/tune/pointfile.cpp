// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/pointfile.h"

#include "core/files/jsonlines.h"

#include <nlohmann/json.hpp>

namespace klineage::gate::tune {

using nlohmann::json;

Result<PointFile> PointFile::open(const std::filesystem::path &path, const std::string &candidateSha,
                                  const std::string &workload)
{
    PointFile file;
    file.m_path = path;
    if (path.empty())
        return file;
    const auto lines = files::readLines(path);
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return file;
    if (!lines)
        return tl::unexpected(lines.error());
    for (const files::Line &line : lines->lines) {
        const std::string where = path.string() + ":" + std::to_string(line.number) + ": ";
        const json entry = json::parse(line.text, nullptr, false);
        if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string())
            return fail(ErrorCode::InvalidInput,
                        where + "is no line of a sweep; expected {\"id\", \"trial\"}. Choose another file.");
        if (!entry.contains("trial"))
            continue;
        try {
            auto trial = entry["trial"].get<Trial>();
            if (trial.candidate != candidateSha || trial.workload != workload)
                return fail(ErrorCode::InvalidInput,
                            where + "is a trial of another candidate or workload. Choose another file.");
            file.m_trials[entry["id"].get<std::string>()] = std::move(trial);
        } catch (const json::exception &problem) {
            return fail(ErrorCode::InvalidInput, where + "the trial cannot be read: " + problem.what());
        }
    }
    return file;
}

const Trial *PointFile::find(const std::string &id) const
{
    const auto found = m_trials.find(id);
    return found == m_trials.end() ? nullptr : &found->second;
}

Status PointFile::add(const std::string &id, const Result<Trial> &result)
{
    if (m_path.empty())
        return {};
    json line = {{"id", id}};
    if (result)
        line["trial"] = *result;
    else
        line["error"] = {{"code", toString(result.error().code)},
                         {"message", result.error().message},
                         {"detail", result.error().detail}};
    return files::appendLine(m_path, line.dump(-1, ' ', false, json::error_handler_t::replace));
}

} // namespace klineage::gate::tune
