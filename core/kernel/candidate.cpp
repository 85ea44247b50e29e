// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/candidate.h"

#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlwriter.h"
#include "core/kernel/candidatetext.h"
#include "core/kernel/candidatewords.h"

#include <fmt/core.h>

#include <algorithm>

namespace klineage::kernel {

namespace {

std::vector<std::string> textsOf(const std::vector<Expression> &expressions)
{
    std::vector<std::string> texts;
    for (const Expression &expression : expressions)
        texts.push_back(expression.text());
    return texts;
}

struct ArgText {
    std::string operator()(const TensorArg &arg) const { return arg.name; }
    std::string operator()(const TensorMapArg &arg) const { return arg.name; }
    std::string operator()(const ScalarArg &arg) const
    {
        return wordOf(scalarWords, arg.type) + ' ' + arg.value.text();
    }
    std::string operator()(const LocalArg &arg) const { return "local " + arg.bytes.text(); }
};

void writeTensorMap(files::TomlWriter &writer, const TensorMap &map)
{
    writer.beginArrayTable("tensormap");
    writer.string("name", map.name);
    writer.string("tensor", map.tensor);
    if (!map.dims.empty())
        writer.expressions("dims", textsOf(map.dims));
    if (!map.strides.empty())
        writer.expressions("strides", textsOf(map.strides));
    writer.expressions("box", textsOf(map.box));
    if (map.swizzle != Swizzle::None)
        writer.string("swizzle", wordOf(swizzleWords, map.swizzle));
    if (map.l2Promotion != L2Promotion::None)
        writer.string("l2_promotion", wordOf(promotionWords, map.l2Promotion));
    if (map.fill != TensorMapFill::Zero)
        writer.string("fill", wordOf(fillWords, map.fill));
}

void writeLaunch(files::TomlWriter &writer, const Launch &launch)
{
    writer.beginArrayTable("launch");
    writer.string("kernel", launch.kernel);
    if (launch.when)
        writer.expression("when", launch.when->text());
    writer.expressions("grid", textsOf(launch.grid));
    if (!launch.block.empty())
        writer.expressions("block", textsOf(launch.block));
    if (launch.warps)
        writer.expression("num_warps", launch.warps->text());
    if (launch.stages)
        writer.expression("num_stages", launch.stages->text());
    if (!launch.multiplesOf16.empty())
        writer.expressions("multiples_of_16", textsOf(launch.multiplesOf16));
    if (!launch.cluster.empty())
        writer.expressions("cluster", textsOf(launch.cluster));
    if (launch.sharedBytes != Expression())
        writer.expression("shared", launch.sharedBytes.text());
    if (launch.cooperative)
        writer.boolean("cooperative", true);
    if (launch.programmaticDependent)
        writer.boolean("pdl", true);
    writer.strings("args", argumentTexts(launch));
}

} // namespace

PlanComment planCommentOf(Surface surface)
{
    return {std::string(surface.language().commentOpen) + "klineage", surface.language().commentClose};
}

std::optional<PlanComment> planCommentOf(std::string_view text)
{
    for (const Surface surface : allSurfaces()) {
        PlanComment comment = planCommentOf(surface);
        if (text.starts_with(comment.opening))
            return comment;
    }
    return std::nullopt;
}

std::string planOpenings()
{
    std::vector<std::string> openings;
    for (const Surface surface : allSurfaces()) {
        if (std::string opening = planCommentOf(surface).opening;
            std::find(openings.begin(), openings.end(), opening) == openings.end())
            openings.push_back(std::move(opening));
    }
    return quotedList(openings);
}

Bindings Candidate::defaultTunables() const
{
    Bindings bindings;
    for (const Tunable &tunable : tunables)
        bindings[tunable.name] = tunable.defaultValue;
    return bindings;
}

Result<std::string> readCandidateText(const std::filesystem::path &path)
{
    return files::readFile(path, maxCandidateBytes);
}

Result<Candidate> readCandidate(const std::filesystem::path &path)
{
    const Result<std::string> text = readCandidateText(path);
    if (!text)
        return tl::unexpected(text.error());
    return parseCandidate(*text, path.string());
}

std::optional<Surface> surfaceOfCandidate(const std::filesystem::path &path)
{
    const std::optional<Surface> named = surfaceOfFile(path);
    if (!named)
        return std::nullopt;
    const Result<Candidate> candidate = readCandidate(path);
    return candidate ? candidate->surface : *named;
}

std::vector<std::string> argumentTexts(const Launch &launch)
{
    std::vector<std::string> args;
    for (const LaunchArg &arg : launch.args)
        args.push_back(std::visit(ArgText(), arg));
    return args;
}

void writeTunables(files::TomlWriter &writer, const std::vector<Tunable> &tunables)
{
    for (const Tunable &tunable : tunables) {
        writer.beginArrayTable("tunable");
        writer.string("name", tunable.name);
        writer.integer("default", tunable.defaultValue);
        writer.integers("values", tunable.values);
    }
}

std::string writePlan(const Candidate &candidate)
{
    files::TomlWriter writer;
    writer.string("surface", toString(candidate.surface));
    writeTunables(writer, candidate.tunables);
    for (const Workspace &workspace : candidate.workspaces) {
        writer.beginArrayTable("workspace");
        writer.string("name", workspace.name);
        writer.string("dtype", toString(workspace.dtype));
        writer.expressions("shape", textsOf(workspace.shape));
        if (workspace.init != WorkspaceInit::Poison)
            writer.string("init", wordOf(initWords, workspace.init));
    }
    for (const TensorMap &map : candidate.tensorMaps)
        writeTensorMap(writer, map);
    for (const Launch &launch : candidate.launches)
        writeLaunch(writer, launch);
    return writer.text();
}

std::string joinCandidate(Surface surface, std::string_view plan, std::string_view code)
{
    const auto [opening, closing] = planCommentOf(surface);
    return fmt::format("{}\n{}{}\n{}", opening, plan, closing, code);
}

std::string_view codeOf(const Candidate &candidate)
{
    const std::string_view source = candidate.source;
    const auto [opening, closing] = planCommentOf(candidate.surface);
    const std::size_t end = source.find(closing, opening.size());
    if (end == std::string_view::npos)
        return source;
    std::string_view code = source.substr(end + closing.size());
    if (code.starts_with("\r\n"))
        code.remove_prefix(2);
    else if (code.starts_with('\n'))
        code.remove_prefix(1);
    return code;
}

} // namespace klineage::kernel
