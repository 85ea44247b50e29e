// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/experiment.h"

#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/lineage/lineage.h"
#include "core/policy/policy.h"
#include "core/run/materialize/arm.h"
#include "core/run/subject.h"

#include <algorithm>
#include <set>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t mostRuns = 10'000;

/// A file of a workload that has no lineage: "root.cu".
bool isFileRoot(const StateName &root)
{
    return !lineage::isStateId(root.state) && kernel::surfaceOfFile(root.state).has_value();
}

bool isRoot(const std::string &name)
{
    const std::optional<StateName> state = stateNameOf(name);
    return state && isSlug(state->workload) && isSlug(state->folder)
           && (lineage::isStateId(state->state) || isFileRoot(*state));
}

void checkLists(const files::TomlTable &root, const Experiment &experiment)
{
    const auto hasTwice = [](auto list) {
        std::sort(list.begin(), list.end());
        return std::adjacent_find(list.begin(), list.end()) != list.end();
    };
    for (const std::string &name : experiment.roots) {
        if (!isRoot(name))
            root.fail(
                "roots",
                "'" + name
                    + "' is no root; expected WORKLOAD/LINEAGE/STATE, as in softmax/pocl/K00, or, of a "
                      "workload without a lineage, WORKLOAD/PLATFORM/FILE, as in softmax/sm90/root.cu.");
    }
    const std::vector<std::string> known = policy::policyNames();
    for (const std::string &name : experiment.policies) {
        const auto [policy, arm] = policyAndArm(name);
        if (std::find(known.begin(), known.end(), policy) == known.end())
            root.fail("policies", "there is no policy '" + policy + "'; expected " + quotedList(known)
                                      + didYouMean(policy, known) + '.');
        else if (name.size() != policy.size() && !armOf({{"arm", arm}}))
            root.fail("policies", "there is no arm '" + arm + "'; expected " + quotedList(armNames())
                                      + didYouMean(arm, armNames()) + '.');
    }
    for (const auto &[name, gain] : experiment.goals) {
        if (std::find(experiment.roots.begin(), experiment.roots.end(), name) == experiment.roots.end())
            root.fail("goal", "'" + name + "' is none of the roots.");
        if (!(gain > 1 && gain < 1e9))
            root.fail("goal", "the goal of '" + name + "' must be a factor above 1.");
    }
    if (!experiment.goals.empty() && experiment.goals.size() < experiment.roots.size())
        root.fail("goal", "each root needs a goal, or none has one.");
    if (experiment.roots.empty() || experiment.policies.empty())
        root.fail(experiment.roots.empty() ? "roots" : "policies", "the list is empty.");
    if (hasTwice(experiment.roots))
        root.fail("roots", "a root is named twice.");
    if (hasTwice(experiment.policies))
        root.fail("policies", "a policy is named twice.");
    if (hasTwice(experiment.seeds))
        root.fail("seeds", "a seed is named twice.");
    if (experiment.roots.size() * experiment.policies.size() * experiment.seeds.size() > mostRuns)
        root.fail("roots", "the experiment has more than " + std::to_string(mostRuns) + " runs.");
    if (!(experiment.budgetDollars >= 0 && experiment.budgetDollars <= 1e6))
        root.fail("budget_dollars", "the budget of a run must lie between 0 and 1000000 dollars.");
}

/// Subject, platform and surface.
Status takeRoot(const StateName &root, const fs::path &workspace, Settings &settings)
{
    const fs::path folder = workspace / "workloads" / root.workload;
    if (isFileRoot(root)) {
        settings.subject = "workloads/" + root.workload + '/' + root.state;
        settings.platform = root.folder;
        settings.surface = kernel::toString(*kernel::surfaceOfCandidate(folder / root.state));
        std::error_code ignored;
        if (fs::is_regular_file(folder / root.state, ignored))
            return {};
        return fail(ErrorCode::NotFound, "The root '" + settings.subject + "' does not exist.");
    }
    const Result<lineage::Lineage> lineage = lineage::readLineage(folder / "lineages" / root.folder);
    if (!lineage)
        return tl::unexpected(lineage.error());
    settings.subject = root.lineage() + '/' + root.state;
    settings.platform = lineage->platform;
    settings.surface = kernel::toString(lineage->surface);
    return {};
}

/// Lower-case letters, digits and '-', which is never first; cut so that a run's id is never too long, with a digest so that no two are the same.
std::string idPart(const std::string &text, std::size_t longest)
{
    std::string part;
    for (const char c : text) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        part += plain ? lower : '-';
    }
    if (part.size() <= longest && !part.starts_with('-') && text.find('_') == std::string::npos)
        return part;
    part.erase(0, part.find_first_not_of('-'));
    return part.substr(0, longest - 7) + (part.empty() ? "" : "-") + files::sha256Hex(text).substr(0, 6);
}

} // namespace

Result<Experiment> parseExperiment(std::string_view text, const std::string &fileName)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    Experiment experiment;
    experiment.title = root.string("title", "");
    root.require("roots");
    root.require("policies");
    experiment.roots = root.strings("roots");
    experiment.policies = root.strings("policies");
    std::vector<std::int64_t> seeds = root.integers("seeds");
    if (seeds.empty())
        seeds = {1};
    for (const std::int64_t seed : seeds) {
        if (seed < 0)
            root.fail("seeds", "a seed is negative.");
        experiment.seeds.push_back(static_cast<std::uint64_t>(seed));
    }
    experiment.budgetDollars = root.number("budget_dollars", 10);
    const std::int64_t steps = root.integer("max_steps", 0);
    if (steps < 0 || steps > 1'000'000)
        root.fail("max_steps", "expected 0 (no limit) to 1000000.");
    experiment.maxSteps = static_cast<int>(std::clamp<std::int64_t>(steps, 0, 1'000'000));
    experiment.provider = root.string("provider");
    experiment.model = root.string("model", "");
    experiment.author = root.stringMap("author");
    experiment.options = root.stringMap("options");
    experiment.rule = root.string("rule", "");
    for (const files::TomlTable &table : root.tables("goal")) {
        const std::string name = table.string("root");
        if (!experiment.goals.emplace(name, table.number("gain")).second)
            table.fail("root", "'" + name + "' has a goal already.");
    }
    if (document->ok())
        checkLists(root, experiment);
    if (Status ok = document->finish(); !ok)
        return tl::unexpected(ok.error());
    return experiment;
}

std::string writeExperiment(const Experiment &experiment)
{
    files::TomlWriter out;
    out.optionalString("title", experiment.title);
    out.strings("roots", experiment.roots);
    out.strings("policies", experiment.policies);
    out.integers("seeds", {experiment.seeds.begin(), experiment.seeds.end()});
    out.number("budget_dollars", experiment.budgetDollars);
    out.integer("max_steps", experiment.maxSteps);
    out.string("provider", experiment.provider);
    out.optionalString("model", experiment.model);
    out.optionalString("rule", experiment.rule);
    out.stringTable("author", experiment.author);
    out.stringTable("options", experiment.options);
    for (const auto &[root, gain] : experiment.goals) {
        out.beginArrayTable("goal");
        out.string("root", root);
        out.number("gain", gain);
    }
    return out.text();
}

Result<Experiment> readExperiment(const fs::path &directory)
{
    const fs::path file = directory / "experiment.toml";
    const Result<std::string> text = files::readFile(file, std::size_t{1} << 20);
    if (!text)
        return tl::unexpected(text.error());
    Result<Experiment> experiment = parseExperiment(*text, file.string());
    if (!experiment)
        return experiment;
    experiment->directory = directory;
    experiment->name = fs::weakly_canonical(directory).filename().string();
    return experiment;
}

std::pair<std::string, std::string> policyAndArm(const std::string &entry)
{
    const std::size_t colon = entry.find(':');
    return {entry.substr(0, colon), colon == std::string::npos ? std::string() : entry.substr(colon + 1)};
}

std::vector<Cell> cellsOf(const Experiment &experiment)
{
    std::vector<Cell> cells;
    for (const std::uint64_t seed : experiment.seeds) {
        for (const std::string &root : experiment.roots) {
            for (const std::string &policy : experiment.policies)
                cells.push_back({root, policy, seed,
                                 idPart(root, 30) + '-' + idPart(policy, 16) + "-s"
                                     + std::to_string(seed % 10'000'000'000)});
        }
    }
    return cells;
}

Result<Settings> settingsOf(const Experiment &experiment, const Cell &cell, const fs::path &workspace)
{
    const std::optional<StateName> root = stateNameOf(cell.root);
    if (!root)
        return fail(ErrorCode::InvalidInput, "'" + cell.root + "' is no state of a lineage.");
    Settings settings;
    if (Status found = takeRoot(*root, workspace, settings); !found)
        return tl::unexpected(found.error());
    settings.id = cell.runId;
    settings.kind = Kind::Materialize;
    settings.workload = root->workload;
    settings.policy = policyAndArm(cell.policy).first;
    settings.provider = experiment.provider;
    settings.model = experiment.model;
    settings.capDollars = experiment.budgetDollars;
    settings.seed = cell.seed;
    settings.maxSteps = experiment.maxSteps;
    settings.author = experiment.author;
    settings.options = experiment.options;
    if (const std::string arm = policyAndArm(cell.policy).second; !arm.empty())
        settings.options["arm"] = arm;
    return settings;
}

} // namespace klineage::run
