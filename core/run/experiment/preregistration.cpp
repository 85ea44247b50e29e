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
    std::error_code ignored;
    if (fs::exists(experiment.directory / "runs", ignored))
        return {};
    files::TomlWriter out;
    out.string("sha256", *hash);
    out.string("time", files::nowUtc());
    return files::writeFileAtomic(fileOf(experiment), out.text());
}

} // namespace klineage::run
