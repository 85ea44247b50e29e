// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/starter.h"

#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/lineage/newlineage.h"

#include <algorithm>
#include <unistd.h>

namespace klineage {

namespace {

namespace fs = std::filesystem;

struct TemplateText {
    const char *name;
    const char *text;
};

// Files of workloads/, built in.
constexpr TemplateText workloadTexts[] = {
#include "templateworkloads.inc"
};
constexpr const char *firstCandidate =
#include "templatecandidate.inc"
    ;

const char *const readme =
    "# A workspace of KLineage\n"
    "\n"
    "`workloads/` holds operators: what is computed (`workload.toml`) and, below `lineages/`, the kernels that compute it, each step from\n"
    "K00 to K* with its recorded trial. `skills/` holds SkillCards: what was learned from the steps.\n"
    "\n"
    "Gate the first kernel, which nothing has measured yet:\n"
    "\n"
    "    klineage-cli gate run workloads/silu/lineages/pocl/K00.cl --workload silu\n"
    "\n"
    "Begin a lineage from a kernel of your own with \"New lineage from my kernel\" in the window, or:\n"
    "\n"
    "    klineage-cli lineage new FILE --workload silu --name mine\n";

Status writeText(const fs::path &file, std::string_view text)
{
    std::error_code problem;
    fs::create_directories(file.parent_path(), problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + file.parent_path().string() + "': " + problem.message() + '.');
    return files::writeFileAtomic(file, text);
}

Status writeParts(const fs::path &root)
{
    std::error_code problem;
    fs::create_directories(root / "skills", problem);
    if (problem)
        return fail(ErrorCode::Io, "Cannot create '" + root.string() + "': " + problem.message() + '.');
    if (Status written = addTemplateWorkload(root, "silu"); !written)
        return written;
    lineage::NewLineage lineage;
    lineage.workload = "silu";
    lineage.platform = "pocl";
    lineage.title = "SiLU (fp32) on a CPU through PoCL";
    lineage.stateTitle = "one element a work-item";
    lineage.origin = "From the library of KLineage Workbench, GPL-3.0-or-later: the definition.";
    if (const auto begun =
            lineage::beginLineage(root / "workloads" / "silu", lineage, firstCandidate, std::nullopt);
        !begun)
        return tl::unexpected(begun.error());
    return writeText(root / "README.md", readme);
}

} // namespace

const std::vector<workload::Workload> &templateWorkloads()
{
    static const std::vector<workload::Workload> all = [] {
        std::vector<workload::Workload> read;
        for (const TemplateText &one : workloadTexts) {
            if (auto workload = workload::parseWorkload(one.text, std::string(one.name) + "/workload.toml"))
                read.push_back(std::move(*workload));
        }
        return read;
    }();
    return all;
}

Status addTemplateWorkload(const fs::path &root, std::string_view name)
{
    const auto found = std::find_if(std::begin(workloadTexts), std::end(workloadTexts),
                                    [name](const TemplateText &one) { return name == one.name; });
    if (found == std::end(workloadTexts)) {
        std::vector<std::string> known;
        for (const TemplateText &one : workloadTexts)
            known.emplace_back(one.name);
        return fail(ErrorCode::NotFound, noSuchName("template", std::string(name), known));
    }
    const fs::path file = root / "workloads" / found->name / "workload.toml";
    std::error_code ignored;
    if (fs::exists(file, ignored))
        return fail(ErrorCode::Conflict, "There is a workload '" + std::string(name) + "' already.");
    return writeText(file, found->text);
}

bool isFreeForWorkspace(const fs::path &folder)
{
    std::error_code problem;
    if (!fs::exists(folder, problem))
        return true;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
        const std::string name = it->path().filename().string();
        std::error_code inner;
        if (name.starts_with('.'))
            continue;
        if ((name != "workloads" && name != "skills") || !fs::is_empty(it->path(), inner) || inner)
            return false;
    }
    return !problem;
}

Status createWorkspace(const fs::path &folder)
{
    std::error_code problem;
    const fs::path place = fs::absolute(folder, problem).lexically_normal();
    if (!isFreeForWorkspace(place))
        return fail(ErrorCode::Conflict,
                    "Cannot create a workspace in '" + place.string() + "': there is something already.");
    // Inside of the folder, which may be all that may be written to, and where a program may stand.
    const fs::path partial = place / (".klineage-new-" + std::to_string(::getpid()));
    Status status = writeParts(partial);
    for (const char *part : {"README.md", "skills", "workloads"}) {
        if (!status)
            break;
        fs::remove(place / part, problem); // an empty folder at most
        fs::rename(partial / part, place / part, problem);
        if (problem)
            status = fail(ErrorCode::Io,
                          "Cannot create the workspace '" + place.string() + "': " + problem.message() + '.');
    }
    fs::remove_all(partial, problem);
    return status;
}

} // namespace klineage
