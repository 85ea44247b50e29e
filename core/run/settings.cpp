// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/runfiles.h"

#include "core/base/identifier.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"

#include <algorithm>
#include <limits>

namespace klineage::run {

namespace {

const std::vector<std::pair<std::string, Kind>> kindWords{{"materialize", Kind::Materialize},
                                                          {"deoptimize", Kind::Deoptimize},
                                                          {"lift", Kind::Lift},
                                                          {"admit", Kind::Admit}};
constexpr double mostDollars = 1e6;

void checkRanges(const files::TomlTable &root, const Settings &settings)
{
    if (!isRunId(settings.id))
        root.fail("id", "'" + settings.id + "' is no name of a run; expected 1 to 64 of a-z, 0-9 and '-'.");
    if (settings.capDollars < 0 || settings.capDollars > mostDollars)
        root.fail("cap_dollars", "the cap must lie between 0 and 1000000 dollars.");
    if (settings.maxSteps < 0)
        root.fail("max_steps", "expected 0 (no limit) or more.");
    if (!settings.surface.empty() && !kernel::surfaceFromString(settings.surface))
        root.fail("surface", "'" + settings.surface + "' is no surface; expected 'cuda' or 'opencl'.");
    for (const char *key : {"workload", "platform"}) {
        const std::string &name = key == std::string_view("workload") ? settings.workload : settings.platform;
        if (!name.empty() && !isSlug(name))
            root.fail(key, "'" + name + "' is no name; expected lower-case letters, digits, '_' and '-'.");
    }
}

} // namespace

const char *toString(Kind kind)
{
    for (const auto &[word, value] : kindWords) {
        if (value == kind)
            return word.c_str();
    }
    return "materialize";
}

std::optional<Kind> kindFromString(std::string_view name)
{
    const auto it = std::find_if(kindWords.begin(), kindWords.end(),
                                 [name](const auto &entry) { return entry.first == name; });
    return it == kindWords.end() ? std::nullopt : std::optional(it->second);
}

bool isRunId(std::string_view id)
{
    return !id.empty() && id.size() <= 64 && id[0] != '-' && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

Result<Settings> parseSettings(std::string_view text, const std::string &fileName)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    Settings settings;
    settings.id = root.string("id");
    settings.kind = root.choice("kind", kindWords);
    settings.created = root.string("created", "");
    settings.workload = root.string("workload", "");
    settings.surface = root.string("surface", "");
    settings.platform = root.string("platform", "");
    settings.policy = root.string("policy", "");
    settings.subject = root.string("subject", "");
    settings.provider = root.string("provider", "");
    settings.model = root.string("model", "");
    settings.capDollars = root.number("cap_dollars", 10);
    const std::int64_t seed = root.integer("seed", 0);
    if (seed < 0)
        root.fail("seed", "expected 0 or more.");
    settings.seed = static_cast<std::uint64_t>(seed);
    const std::int64_t steps = root.integer("max_steps", 0);
    settings.maxSteps =
        static_cast<int>(std::clamp<std::int64_t>(steps, -1, std::numeric_limits<int>::max()));
    settings.author = root.stringMap("author");
    settings.options = root.stringMap("options");
    checkRanges(root, settings);
    if (Status ok = document->finish(); !ok)
        return tl::unexpected(ok.error());
    return settings;
}

std::string writeSettings(const Settings &settings)
{
    files::TomlWriter out;
    out.string("id", settings.id);
    out.string("kind", toString(settings.kind));
    out.optionalString("created", settings.created);
    out.optionalString("workload", settings.workload);
    out.optionalString("surface", settings.surface);
    out.optionalString("platform", settings.platform);
    out.optionalString("policy", settings.policy);
    out.optionalString("subject", settings.subject);
    out.optionalString("provider", settings.provider);
    out.optionalString("model", settings.model);
    out.number("cap_dollars", settings.capDollars);
    out.integer("seed", static_cast<std::int64_t>(settings.seed));
    out.integer("max_steps", settings.maxSteps);
    out.stringTable("author", settings.author);
    out.stringTable("options", settings.options);
    return out.text();
}

Result<Settings> readSettings(const std::filesystem::path &directory)
{
    const std::filesystem::path file = directory / settingsFile;
    const Result<std::string> text = files::readFile(file, maxSettingsBytes);
    if (!text)
        return fail(text.error().code,
                    "Cannot read the run in '" + directory.string() + "': " + text.error().message,
                    text.error().detail);
    return parseSettings(*text, file.string());
}

Result<Ending> readEnding(const std::filesystem::path &directory)
{
    const std::filesystem::path file = directory / endingFile;
    const Result<std::string> text = files::readFile(file, maxSettingsBytes);
    if (!text && text.error().code == ErrorCode::NotFound)
        return Ending();
    if (!text)
        return tl::unexpected(text.error());
    const Result<files::TomlDocument> document = files::TomlDocument::parse(*text, file.string());
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    Ending ending{root.string("ending"), root.string("reason", "")};
    static_cast<void>(root.string("time", ""));
    if (Status ok = document->finish(); !ok)
        return tl::unexpected(ok.error());
    return ending;
}

} // namespace klineage::run
