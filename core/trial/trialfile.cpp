// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/trialfile.h"

#include "core/files/formatnumber.h"
#include "core/files/jsonlines.h"

#include <set>
#include <utility>

namespace klineage::gate {

Result<TrialFile> readTrialFile(const std::filesystem::path &path, const std::stop_token &stop)
{
    TrialFile file;
    const Result<files::Lines> lines = files::readLines(path);
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return file;
    if (!lines)
        return tl::unexpected(lines.error());
    const std::string name = path.filename().string();
    std::set<std::string> ids;
    const files::PassedOver passedOver;
    file.trials.reserve(lines->lines.size());
    for (const files::Line &line : lines->lines) {
        if (stop.stop_requested())
            return file;
        Result<Trial> trial = parseTrial(line.text, path.string() + ':' + std::to_string(line.number));
        if (!trial)
            file.notices.push_back("A trial was left out: " + trial.error().message);
        else if (!ids.insert(trial->id).second)
            file.notices.push_back("Line " + std::to_string(line.number) + " of " + name + " repeats trial "
                                   + trial->id + " and was left out.");
        else
            file.trials.push_back(std::move(*trial));
    }
    if (std::string sentence = passedOver.sentence(name); !sentence.empty())
        file.notices.push_back(std::move(sentence));
    if (lines->tornTail)
        file.notices.push_back("Line " + std::to_string(lines->tornTail->number) + " of " + name
                               + " was cut short, as by a kill while it was written, and was left out.");
    return file;
}

} // namespace klineage::gate
