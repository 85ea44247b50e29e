// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/modelsettings.h"

#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/files/jsontext.h"
#include "core/files/tomlentries.h"
#include "core/llm/prices.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace klineage::llm {

namespace {

constexpr std::size_t maxModelsBytes = std::size_t{1} << 20;
constexpr std::size_t maxModels = 10'000;
constexpr std::size_t maxHostName = 256;

/// As parseBaseUrl() gives hosts: a name or an address, no scheme, port or path.
bool isHost(std::string_view host)
{
    return !host.empty() && host.size() <= maxHostName && std::all_of(host.begin(), host.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'
               || c == '[' || c == ']' || c == ':';
    });
}

/// As it is compared with a recorded one: on one line, without blanks. extraBody is sound.
std::string normalizedBody(const std::string &extraBody)
{
    return files::oneLine(files::OrderedJson::parse(extraBody, nullptr, false));
}

ModelSettings readModelSettings(const files::TomlTable &table, std::set<std::string> &seen)
{
    ModelSettings settings;
    settings.model = table.string("name");
    const std::size_t star = settings.model.find('*');
    if (table.has("name") && (settings.model.empty() || settings.model.size() > maxHostName))
        table.fail("name", "'name' is empty or longer than 256 bytes.");
    else if (star != std::string::npos && star + 1 != settings.model.size())
        table.fail("name", "'name' has a '*' that is not its end.");
    else if (table.has("name") && !seen.insert(settings.model).second)
        table.fail("name", "there are two entries for '" + settings.model + "'.");
    if (table.has("temperature"))
        settings.temperature = table.number("temperature");
    settings.effort = table.string("effort", std::string());
    settings.extraBody = table.string("extra_body", std::string());
    Request probe;
    probe.messages = {{Role::User, "?", false}};
    const auto check = [&](const char *key) {
        if (const Status sound = checkRequest(probe); !sound && table.has(key))
            table.fail(key, sound.error().message);
        probe.temperature.reset();
        probe.effort.clear();
        probe.extraBody.clear();
    };
    probe.temperature = settings.temperature;
    check("temperature");
    probe.effort = settings.effort;
    check("effort");
    probe.extraBody = settings.extraBody;
    check("extra_body");
    return settings;
}

} // namespace

const ModelSettings *OwnModels::find(std::string_view model) const
{
    const ModelSettings *best = nullptr;
    for (const ModelSettings &settings : models) {
        if (settings.model == model)
            return &settings;
        if (!settings.model.ends_with('*'))
            continue;
        const std::string_view beginning =
            std::string_view(settings.model).substr(0, settings.model.size() - 1);
        if (model.starts_with(beginning) && (!best || settings.model.size() > best->model.size()))
            best = &settings;
    }
    return best;
}

std::filesystem::path ownModelsFile()
{
    const std::filesystem::path prices = ownPriceFile();
    return prices.empty() ? prices : prices.parent_path() / "models.toml";
}

Result<OwnModels> parseModels(std::string_view text, const std::string &fileName)
{
    const auto document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    OwnModels own;
    own.file = fileName;
    own.ownHosts = root.strings("own_hosts");
    for (const std::string &host : own.ownHosts) {
        if (!isHost(host))
            root.fail("own_hosts", "'" + validUtf8(host.substr(0, maxHostName))
                                       + "' is no host; expected a name or an address in lower case, without "
                                         "scheme, port and path.");
    }
    std::set<std::string> seen;
    for (const files::TomlTable &model : files::tomlEntries(root, "model", maxModels))
        own.models.push_back(readModelSettings(model, seen));
    if (Status ok = document->finish(); !ok)
        return tl::unexpected(ok.error());
    return own;
}

Result<OwnModels> loadModels()
{
    const std::filesystem::path file = ownModelsFile();
    if (file.empty())
        return OwnModels();
    const Result<std::string> text = files::readFile(file, maxModelsBytes);
    if (text)
        return parseModels(*text, file.string());
    // One that is there but cannot be read is not passed over: other settings would apply than the person thinks.
    if (text.error().code != ErrorCode::NotFound)
        return tl::unexpected(text.error());
    return OwnModels();
}

const std::vector<std::string> &authorKeys()
{
    static const std::vector<std::string> keys{"temperature", "effort", "extra_body"};
    return keys;
}

Status applyAuthorKeys(const std::map<std::string, std::string> &author, Request &request)
{
    const auto value = [&](const char *key) {
        const auto found = author.find(key);
        return found == author.end() ? std::string() : found->second;
    };
    if (const std::string text = value("temperature"); !text.empty()) {
        double temperature = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), temperature);
        if (problem != std::errc() || end != text.data() + text.size())
            return fail(ErrorCode::InvalidInput, "The temperature is '" + validUtf8(text.substr(0, 64))
                                                     + "'; a number from 0 to 2 was expected.");
        request.temperature = temperature;
    }
    if (const std::string text = value("effort"); !text.empty())
        request.effort = text;
    Request probe;
    probe.messages = {{Role::User, "?", false}};
    probe.temperature = request.temperature;
    probe.effort = request.effort;
    probe.extraBody = value("extra_body");
    if (Status sound = checkRequest(probe); !sound)
        return sound;
    if (!probe.extraBody.empty())
        request.extraBody = normalizedBody(probe.extraBody);
    return {};
}

void addModelSettings(const OwnModels &own, const std::string &model,
                      std::map<std::string, std::string> &author)
{
    const ModelSettings *settings = own.find(model);
    if (!settings)
        return;
    const auto add = [&](const char *key, const std::string &text) {
        if (!text.empty() && author[key].empty())
            author[key] = text;
    };
    if (settings->temperature)
        add("temperature", shortestText(*settings->temperature));
    add("effort", settings->effort);
    add("extra_body", settings->extraBody);
}

} // namespace klineage::llm
