// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/drive/runprovider.h"

#include "core/base/suggest.h"
#include "core/files/filehandle.h"
#include "core/llm/modelsettings.h"

#include <algorithm>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

Status checkKeys(const Settings &settings)
{
    std::vector<std::string> known{"base_url", "command", "transcript", "paid"};
    known.insert(known.end(), llm::authorKeys().begin(), llm::authorKeys().end());
    for (const auto &[name, value] : settings.author) {
        if (std::find(known.begin(), known.end(), name) == known.end())
            return fail(ErrorCode::InvalidInput, "The run's [author] has the unknown key '" + name + "'"
                                                     + didYouMean(name, known) + "; expected "
                                                     + quotedList(known) + '.');
        if (name == "paid" && value != "yes" && value != "no")
            return fail(ErrorCode::InvalidInput,
                        "The key 'paid' of the run's [author] is '" + value + "'; expected 'yes' or 'no'.");
    }
    return {};
}

} // namespace

Result<std::unique_ptr<llm::Provider>> makeRunProvider(const Settings &settings, const fs::path &workspace,
                                                       const fs::path &runDirectory,
                                                       std::shared_ptr<llm::ManualDesk> desk,
                                                       llm::KeyCallback key, llm::NoticeCallback notice)
{
    if (Status sound = checkKeys(settings); !sound)
        return tl::unexpected(sound.error());
    const auto value = [&](const char *name) {
        const auto it = settings.author.find(name);
        return it == settings.author.end() ? std::string() : it->second;
    };
    llm::ProviderOptions options;
    options.baseUrl = value("base_url");
    options.key = std::move(key);
    options.notice = std::move(notice);
    if (const std::string paid = value("paid"); !paid.empty())
        options.paid = paid == "yes";
    if (const std::string command = value("command"); !command.empty())
        options.command = {"/bin/sh", "-c", "cd \"$1\" || exit 127\n" + command, "sh", workspace.string()};
    options.path = value("transcript");
    if (settings.provider == "manual" && !desk) {
        options.path = runDirectory / "manual";
        std::error_code problem;
        fs::create_directories(options.path, problem);
        if (problem)
            return files::systemError("create", options.path, problem.value());
    }
    options.desk = std::move(desk);
    return llm::makeProvider(settings.provider, std::move(options));
}

} // namespace klineage::run
