// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/benchfile.h"

#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlreader.h"

namespace klineage::gate {

namespace {

BenchCase readCase(const files::TomlTable &table, const std::filesystem::path &directory)
{
    BenchCase out;
    out.name = table.string("name");
    out.workload = directory / table.string("workload");
    out.candidate = directory / table.string("candidate");
    if (const auto surface = kernel::surfaceOfCandidate(out.candidate))
        out.surface = *surface;
    else if (table.has("candidate"))
        table.fail("candidate", "'" + out.candidate.filename().string()
                                    + "' is no candidate; expected a file that ends in "
                                    + quotedList(kernel::surfaceExtensions()) + ".");
    out.latency = table.choice<bool>("kind", {{"latency", true}, {"discrimination", false}});
    if (const std::string parent = table.string("parent", ""); !parent.empty())
        out.parent = directory / parent;
    if (!out.parent.empty() && !out.latency)
        table.fail("parent",
                   "Only a case of the kind \"latency\" has a parent; the others are compared with copies of "
                   "themselves.");
    out.find = table.string("find", "");
    out.put = table.string("put", "");
    return out;
}

} // namespace

Result<std::vector<BenchCase>> readBench(const std::filesystem::path &directory)
{
    const auto file = directory / "bench.toml";
    const auto text = files::readFile(file, files::maxTomlBytes);
    if (!text)
        return tl::unexpected(text.error());
    const auto document = files::TomlDocument::parse(*text, file.string());
    if (!document)
        return tl::unexpected(document.error());
    std::vector<BenchCase> cases;
    for (const auto &table : document->root().tables("case"))
        cases.push_back(readCase(table, directory));
    if (auto sound = document->finish(); !sound)
        return tl::unexpected(sound.error());
    for (const BenchCase &entry : cases) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(entry.candidate, ignored)
            || (!entry.parent.empty() && !std::filesystem::is_regular_file(entry.parent, ignored))
            || !std::filesystem::is_regular_file(entry.workload / "workload.toml", ignored))
            return fail(ErrorCode::NotFound, "Cannot use " + file.string()
                                                 + ": the candidate, parent or workload of " + entry.name
                                                 + " is not there.");
    }
    return cases;
}

Result<std::string> plantDelay(const BenchCase &benchCase, const std::string &source, long cycles)
{
    const auto at = source.find(benchCase.find);
    if (benchCase.find.empty() || at == std::string::npos)
        return fail(ErrorCode::InvalidInput, "Cannot plant a delay in " + benchCase.name
                                                 + ": its source does not have the text to replace.");
    std::string put = benchCase.put;
    if (const auto mark = put.find("@CYCLES@"); mark != std::string::npos)
        put.replace(mark, 8, std::to_string(cycles));
    std::string planted = source;
    planted.replace(at, benchCase.find.size(), put);
    return planted;
}

} // namespace klineage::gate
