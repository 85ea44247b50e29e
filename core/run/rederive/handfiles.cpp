// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/rederive/handfiles.h"

#include "core/files/jsonlines.h"
#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"

#include <system_error>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char *const logFile = "rederived/log.jsonl";

HandLogLine readLogLine(const json &object)
{
    files::JsonReader reader(object, {});
    HandLogLine line;
    line.from = reader.text("from");
    line.to = reader.text("to");
    line.number = static_cast<int>(reader.integer("try"));
    static_cast<void>(reader.text("provider"));
    line.category = reader.text("category");
    line.locus = reader.text("locus");
    line.intent = reader.optionalText("intent");
    line.prompt = reader.text("prompt");
    line.reply = reader.text("reply");
    line.candidate = reader.text("candidate");
    line.outcome = reader.text("outcome");
    line.reason = reader.optionalText("reason");
    if (reader.find("same_code_as_stronger"))
        line.isStrongerText = reader.boolean("same_code_as_stronger");
    if (const json *trials = reader.optionalArray("trials", 64)) {
        for (const json &trial : *trials)
            line.trials.push_back(files::readText(trial, reader.pathOf("trials")));
    }
    reader.finish();
    return line;
}

} // namespace

HandTry handTry(const fs::path &folder, const lineage::Lineage &lineage, const std::string &to, int number)
{
    std::string stem = lineage.workload + '-' + lineage.folder() + '-' + to;
    if (number > 0)
        stem += ".repair" + std::to_string(number);
    return {number, folder / (stem + ".prompt.md"), folder / (stem + ".reply.md"),
            folder / (stem + ".problem.md"), folder / candidateName(stem, lineage.surface)};
}

std::string handPrompt(const Conversation &conversation)
{
    return conversation.system + "\n# Task\n\n" + conversation.messages.front().text;
}

std::string handRepair(const std::string &prompt, const std::string &reply, const std::string &repair)
{
    std::string text = prompt + "\n# Your reply\n\n" + reply;
    if (!text.ends_with('\n'))
        text += '\n';
    return text + "\n# What came of it\n\n" + repair;
}

Result<std::vector<HandLogLine>> readHandLog(const fs::path &lineageDirectory)
{
    const fs::path path = lineageDirectory / logFile;
    const Result<files::Lines> lines = files::readLines(path);
    std::vector<HandLogLine> log;
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return log;
    if (!lines)
        return tl::unexpected(lines.error());
    for (const files::Line &line : lines->lines) {
        Result<HandLogLine> read =
            files::parseJsonLine(line.text, path.string() + ':' + std::to_string(line.number), readLogLine);
        if (!read)
            return tl::unexpected(read.error());
        log.push_back(std::move(*read));
    }
    return log;
}

Status appendHandLog(const fs::path &lineageDirectory, const HandLogLine &line)
{
    std::error_code problem;
    fs::create_directories((lineageDirectory / logFile).parent_path(), problem);
    files::OrderedJson out;
    out["from"] = line.from;
    out["to"] = line.to;
    out["try"] = line.number;
    out["provider"] = "manual";
    out["category"] = line.category;
    out["locus"] = line.locus;
    files::setUnlessEmpty(out, "intent", line.intent);
    out["prompt"] = line.prompt;
    out["reply"] = line.reply;
    out["candidate"] = line.candidate;
    out["outcome"] = line.outcome;
    files::setUnlessEmpty(out, "reason", line.reason);
    if (line.isStrongerText)
        out["same_code_as_stronger"] = true;
    out["trials"] = line.trials;
    return files::appendLine(lineageDirectory / logFile, files::oneLine(out));
}

} // namespace klineage::run
