// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/preregistration.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/files/utctime.h"

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t maxBytes = std::size_t{1} << 20;

fs::path fileOf(const Experiment &experiment)
{
    return experiment.directory / "preregistered.toml";
}

Result<std::string> hashOf(const Experiment &experiment)
{
    const Result<std::string> text = files::readFile(experiment.directory / "experiment.toml", maxBytes);
    return text ? Result<std::string>(files::sha256Hex(*text)) : tl::unexpected(text.error());
}

bool hasRuns(const Experiment &experiment)
{
    std::error_code ignored;
    return fs::exists(experiment.directory / "runs", ignored);
}

std::map<std::string, policy::Options> newDefaults(const Experiment &experiment)
{
    std::map<std::string, policy::Options> defaults;
    for (const std::string &entry : experiment.policies) {
        const std::string policy = policyAndArm(entry).first;
        defaults[policy] = policy::newOptions(policy);
    }
    return defaults;
}

} // namespace

Result<std::optional<Preregistration>> readPreregistration(const Experiment &experiment)
{
    std::error_code ignored;
    if (!fs::exists(fileOf(experiment), ignored))
        return std::nullopt;
    const Result<std::string> text = files::readFile(fileOf(experiment), maxBytes);
    if (!text)
        return tl::unexpected(text.error());
    const Result<files::TomlDocument> document =
        files::TomlDocument::parse(*text, fileOf(experiment).string());
    if (!document)
        return tl::unexpected(document.error());
    Preregistration registered;
    registered.sha256 = document->root().string("sha256");
    registered.time = document->root().string("time");
    for (const files::TomlTable &table : document->root().tables("defaults"))
        registered.defaults[table.string("policy")] = table.stringMap("options");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return registered;
}

Status preregister(const Experiment &experiment)
{
    const Result<std::string> hash = hashOf(experiment);
    if (!hash)
        return tl::unexpected(hash.error());
    const Result<std::optional<Preregistration>> before = readPreregistration(experiment);
    if (!before)
        return tl::unexpected(before.error());
    if (*before) {
        if ((*before)->sha256 == *hash)
            return {};
        return fail(
            ErrorCode::Conflict,
            "experiment.toml is not what it was when the first run of '" + experiment.name + "' began ("
                + (*before)->time
                + "): a plan that is changed after the first result is a new experiment, in a folder of its own.");
    }
    if (hasRuns(experiment))
        return {};
    files::TomlWriter out;
    out.string("sha256", *hash);
    out.string("time", files::nowUtc());
    for (const auto &[policy, options] : newDefaults(experiment)) {
        out.beginArrayTable("defaults");
        out.string("policy", policy);
        out.stringMap("options", options);
    }
    return files::writeFileAtomic(fileOf(experiment), out.text());
}

Result<std::map<std::string, policy::Options>> defaultsOf(const Experiment &experiment)
{
    Result<std::optional<Preregistration>> before = readPreregistration(experiment);
    if (!before)
        return tl::unexpected(before.error());
    if (*before)
        return std::move((*before)->defaults);
    return hasRuns(experiment) ? std::map<std::string, policy::Options>() : newDefaults(experiment);
}

} // namespace klineage::run
