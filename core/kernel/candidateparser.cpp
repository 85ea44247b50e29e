// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/files/tomlentries.h"
#include "core/kernel/candidate.h"
#include "core/kernel/candidatewords.h"
#include "core/kernel/readexpression.h"

#include <algorithm>
#include <set>

namespace klineage::kernel {

namespace {

using files::TomlTable;
using files::TomlText;

constexpr std::size_t maxLaunches = 256;
constexpr std::size_t maxEntries =
    64; ///< tunables, their values, workspaces, tensor maps, arguments of a launch
constexpr std::size_t maxRank = 8;
constexpr std::size_t maxTensorMapRank = 5;
constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";

/// Names that expressions get from the device; a tunable must not hide one.
const std::vector<std::string> deviceFacts = {"sm_count", "warp_size", "max_shared"};

/// "'cuda'": the surfaces whose device has that.
std::string surfacesWith(bool DeviceTraits::*member)
{
    std::vector<std::string> names;
    for (const Surface surface : allSurfaces()) {
        if (surface.device().*member)
            names.emplace_back(toString(surface));
    }
    return quotedList(names);
}

class PlanReader
{
public:
    explicit PlanReader(const TomlTable &root)
        : m_root(root)
    {}

    Candidate read()
    {
        Candidate candidate;
        candidate.surface = m_root.choice("surface", surfaceWords());
        m_surface = candidate.surface;
        m_device = &candidate.surface.device();
        for (const TomlTable &table : files::tomlEntries(m_root, "tunable", maxEntries))
            candidate.tunables.push_back(tunable(table));
        for (const TomlTable &table : files::tomlEntries(m_root, "workspace", maxEntries))
            candidate.workspaces.push_back(workspace(table));
        for (const TomlTable &table : files::tomlEntries(m_root, "tensormap", maxEntries)) {
            if (!m_device->tensorMaps)
                table.fail(table.position(), "tensor maps are for the surface "
                                                 + surfacesWith(&DeviceTraits::tensorMaps) + " only.");
            candidate.tensorMaps.push_back(tensorMap(table));
            m_tensorMapNames.insert(candidate.tensorMaps.back().name);
        }
        m_root.require("launch");
        for (const TomlTable &table : files::tomlEntries(m_root, "launch", maxLaunches))
            candidate.launches.push_back(launch(table));
        return candidate;
    }

private:
    /// A name that expressions, arguments and the compiler's command line can use, given once in the file.
    std::string uniqueName(const TomlTable &table)
    {
        std::string name = table.string("name");
        if (!table.has("name"))
            return name;
        if (!isIdentifier(name))
            table.fail("name", "'name' is '" + name + "'; expected a C identifier of at most 64 characters.");
        else if (std::find(deviceFacts.begin(), deviceFacts.end(), name) != deviceFacts.end())
            table.fail("name", "the name '" + name + "' is taken by a fact of the device.");
        else if (!m_names.insert(name).second)
            table.fail("name",
                       "the name '" + name
                           + "' is used twice; tunables, workspaces and tensor maps share one space.");
        return name;
    }

    Tunable tunable(const TomlTable &table)
    {
        Tunable tunable;
        tunable.name = uniqueName(table);
        if (tunable.name.find("__") != std::string::npos)
            table.fail("name", "the tunable's name '" + tunable.name
                                   + "' has two underscores beside each other, as the compiler's own names.");
        tunable.defaultValue = table.integer("default");
        tunable.values = table.integers("values");
        if (!table.has("values"))
            tunable.values = {tunable.defaultValue};
        if (tunable.values.size() > maxEntries)
            table.fail("values", "'values' has more than " + std::to_string(maxEntries) + " entries.");
        std::vector<std::int64_t> sorted = tunable.values;
        std::sort(sorted.begin(), sorted.end());
        if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
            table.fail("values", "'values' has " + std::to_string(*twice) + " twice.");
        if (!std::binary_search(sorted.begin(), sorted.end(), tunable.defaultValue))
            table.fail("default", "'default' is " + std::to_string(tunable.defaultValue)
                                      + "; expected one of 'values'.");
        return tunable;
    }

    Workspace workspace(const TomlTable &table)
    {
        Workspace workspace;
        workspace.name = uniqueName(table);
        workspace.dtype = readDType(table, "dtype");
        workspace.shape = readExpressions(table, "shape", 1, maxRank);
        workspace.init = table.choice("init", initWords, WorkspaceInit::Poison);
        return workspace;
    }

    TensorMap tensorMap(const TomlTable &table)
    {
        TensorMap map;
        map.name = uniqueName(table);
        map.tensor = table.string("tensor");
        if (table.has("tensor") && !isIdentifier(map.tensor))
            table.fail("tensor",
                       "'tensor' is '" + map.tensor + "'; expected the name of a tensor or workspace.");
        map.dims = readExpressions(table, "dims", 0, maxTensorMapRank);
        map.strides = readExpressions(table, "strides", 0, maxTensorMapRank - 1);
        map.box = readExpressions(table, "box", 1, maxTensorMapRank);
        map.swizzle = table.choice("swizzle", swizzleWords, Swizzle::None);
        map.l2Promotion = table.choice("l2_promotion", promotionWords, L2Promotion::None);
        map.fill = table.choice("fill", fillWords, TensorMapFill::Zero);
        static_cast<void>(table.choice<bool>("interleave", {{"none", true}}, true));
        if (!map.dims.empty() && map.box.size() != map.dims.size())
            table.fail("box", "'box' has " + std::to_string(map.box.size()) + " entries; expected "
                                  + std::to_string(map.dims.size()) + ", one for each of 'dims'.");
        const std::size_t rank = map.dims.empty() ? map.box.size() : map.dims.size();
        if (!map.strides.empty() && rank > 0 && map.strides.size() != rank - 1)
            table.fail("strides", "'strides' has " + std::to_string(map.strides.size())
                                      + " entries; expected " + std::to_string(rank - 1)
                                      + ": the innermost one is left out.");
        return map;
    }

    Launch launch(const TomlTable &table)
    {
        Launch launch;
        launch.line = table.position().line;
        launch.kernel = table.string("kernel");
        if (table.has("kernel") && !isIdentifier(launch.kernel))
            table.fail("kernel",
                       "'kernel' is '" + launch.kernel + "'; expected the name of a kernel function.");
        launch.when = readOptionalExpression(table, "when");
        launch.grid = readExpressions(table, "grid", 1, 3);
        if (m_surface->compilerDecides)
            readHints(table, launch);
        else
            readSizes(table, launch);
        launch.cooperative = table.boolean("cooperative", false);
        launch.programmaticDependent = table.boolean("pdl", false);
        for (const char *key : {"cluster", "shared", "cooperative", "pdl"}) {
            if (m_device->launchAttributes || !table.has(key))
                continue;
            const bool hasOther = key == std::string_view("shared") && m_device->localArguments;
            table.fail(key,
                       "'" + std::string(key) + "' is for the surface "
                           + surfacesWith(&DeviceTraits::launchAttributes) + " only"
                           + (hasOther ? std::string("; ") + m_device->name + " has 'local BYTES' in 'args'."
                                       : "."));
        }
        table.require("args");
        const std::vector<TomlText> texts = table.texts("args");
        if (texts.size() > maxEntries)
            table.fail("args", "'args' has more than " + std::to_string(maxEntries) + " entries.");
        for (const TomlText &text : texts)
            launch.args.push_back(argument(table, text));
        for (const Expression &multiple : launch.multiplesOf16) {
            const bool passed =
                std::any_of(launch.args.begin(), launch.args.end(), [&](const LaunchArg &arg) {
                    const auto *scalar = std::get_if<ScalarArg>(&arg);
                    return scalar && scalar->value.text() == multiple.text();
                });
            if (!passed)
                table.fail("multiples_of_16", "'multiples_of_16' has '" + multiple.text()
                                                  + "', which is the value of none of 'args'.");
        }
        return launch;
    }

    static void readSizes(const TomlTable &table, Launch &launch)
    {
        launch.block = readExpressions(table, "block", 1, 3);
        launch.cluster = readExpressions(table, "cluster", 0, 3);
        launch.sharedBytes = readOptionalExpression(table, "shared").value_or(Expression());
    }

    /// Where the compiler decides about the rest.
    void readHints(const TomlTable &table, Launch &launch) const
    {
        launch.warps = readOptionalExpression(table, "num_warps");
        launch.stages = readOptionalExpression(table, "num_stages");
        launch.multiplesOf16 = readExpressions(table, "multiples_of_16", 0, maxEntries);
        for (const char *key : {"block", "cluster", "shared"}) {
            if (table.has(key))
                table.fail(key, "'" + std::string(key) + "' is for the compiler of the surface '"
                                    + toString(m_surface) + "' to say"
                                    + (m_surface->takesHints ? "; a launch has 'num_warps' and 'num_stages'."
                                                             : ", by the source."));
        }
        for (const char *key : {"num_warps", "num_stages", "multiples_of_16"}) {
            if (table.has(key) && !m_surface->takesHints)
                table.fail(key, "'" + std::string(key) + "' is not for the surface '" + toString(m_surface)
                                    + "', whose source says such things.");
        }
    }

    /// "x", "int M", "float rsqrt(K)" or "local BM * 4".
    LaunchArg argument(const TomlTable &table, const TomlText &text) const
    {
        if (isIdentifier(text.text)) {
            if (m_tensorMapNames.contains(text.text))
                return TensorMapArg{text.text};
            return TensorArg{text.text};
        }
        const std::size_t blank = text.text.find(' ');
        const std::string word = text.text.substr(0, blank);
        const std::string rest = blank == std::string::npos ? std::string() : text.text.substr(blank + 1);
        for (const auto &[name, type] : scalarWords) {
            if (word == name)
                return ScalarArg{type, parseExpressionAt(table, {rest, text.position})};
        }
        if (word == "local") {
            if (!m_device->localArguments)
                table.fail(text.position,
                           "'local' is for the surface " + surfacesWith(&DeviceTraits::localArguments)
                               + " only"
                               + (m_device->launchAttributes
                                      ? std::string("; ") + m_device->name + " has the key 'shared'."
                                      : "."));
            return LocalArg{parseExpressionAt(table, {rest, text.position})};
        }
        std::vector<std::string> types = {"local"};
        for (const auto &scalar : scalarWords)
            types.push_back(scalar.first);
        const std::string hint = didYouMean(word, types);
        table.fail(text.position, "the argument '" + text.text.substr(0, 200)
                                      + "' is neither a name nor a type and an expression (\"int M\")"
                                      + (hint.empty() ? "." : hint));
        return TensorArg{text.text};
    }

    TomlTable m_root;
    Surface m_surface;
    const DeviceTraits *m_device = nullptr;
    std::set<std::string> m_names;
    std::set<std::string> m_tensorMapNames;
};

} // namespace

Result<Candidate> parseCandidate(std::string_view text, const std::string &fileName)
{
    const auto refuse = [&fileName](TextPosition position, const std::string &message) {
        return fail(ErrorCode::InvalidInput, located(fileName, position, message));
    };
    if (text.size() > maxCandidateBytes)
        return refuse({}, "the file is larger than the limit of " + std::to_string(maxCandidateBytes)
                              + " bytes.");
    if (text.starts_with(byteOrderMark)) // some editors write it, and some compilers refuse it
        text.remove_prefix(byteOrderMark.size());
    const auto comment = planCommentOf(text);
    if (!comment)
        return refuse({1, 1},
                      "the launch plan is missing; expected the file to begin with " + planOpenings() + ".");
    const auto &[opening, closing] = *comment;
    const std::size_t end = text.find(closing, opening.size());
    if (end == std::string_view::npos)
        return refuse({1, 1}, "the launch plan never ends; expected '" + closing + "'.");
    if (text.find('\0') != std::string_view::npos)
        return refuse({}, "the file contains a NUL byte; expected text.");
    const std::string_view plan = text.substr(opening.size(), end - opening.size());
    if (!plan.empty() && std::string_view(" \t\r\n").find(plan.front()) == std::string_view::npos)
        return refuse({1, static_cast<int>(opening.size()) + 1},
                      "expected a line break after '" + opening + "'.");

    const Result<files::TomlDocument> document = files::TomlDocument::parse(plan, fileName);
    if (!document)
        return tl::unexpected(document.error());
    Candidate candidate = PlanReader(document->root()).read();
    if (Status status = document->finish(); !status)
        return tl::unexpected(status.error());

    if (planCommentOf(candidate.surface) != *comment)
        return refuse({1, 1}, std::string("the surface '") + toString(candidate.surface)
                                  + "' has its plan in a comment of its own kind; expected '"
                                  + planCommentOf(candidate.surface).opening + "'.");
    candidate.source = text;
    const std::size_t codeBegin = text.size() - codeOf(candidate).size();
    candidate.codeLine = 1
                         + static_cast<int>(std::count(
                             text.begin(), text.begin() + static_cast<std::ptrdiff_t>(codeBegin), '\n'));
    return candidate;
}

} // namespace klineage::kernel
