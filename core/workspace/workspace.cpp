// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/workspace.h"

#include "core/files/formatnumber.h"
#include "core/skills/store.h"
#include "core/workspace/folders.h"

#include <algorithm>
#include <future>

namespace klineage {

namespace {

namespace fs = std::filesystem;

/// Sub-folders that hold a file of this name, sorted; hidden ones are left out. A missing folder has none.
std::vector<fs::path> foldersWith(const fs::path &parent, const char *fileName)
{
    std::vector<fs::path> folders;
    std::error_code problem;
    for (fs::directory_iterator it(parent, problem), end; !problem && it != end; it.increment(problem)) {
        std::error_code ignored;
        const bool hidden = it->path().filename().string().starts_with('.');
        if (!hidden && fs::exists(it->path() / fileName, ignored))
            folders.push_back(it->path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

bool isWorkspace(const fs::path &folder)
{
    std::error_code ignored;
    return fs::is_directory(folder / "workloads", ignored) && fs::is_directory(folder / "skills", ignored);
}

/// Lineages are the bulk of the bytes, so they are read on two threads, each into its own slots.
std::vector<Result<lineage::Lineage>> readLineages(const std::vector<fs::path> &folders)
{
    std::vector<Result<lineage::Lineage>> results(folders.size(),
                                                  fail(ErrorCode::Internal, "The lineage was not read."));
    const auto readEveryOther = [&](std::size_t first) {
        for (std::size_t i = first; i < folders.size(); i += 2)
            results[i] = lineage::readLineage(folders[i]);
    };
    const std::future<void> odd = std::async(std::launch::async, readEveryOther, std::size_t{1});
    readEveryOther(0);
    odd.wait();
    return results;
}

template <typename T, typename Key>
const T *findSorted(const std::vector<T> &items, Key &&matches)
{
    const auto it = std::find_if(items.begin(), items.end(), matches);
    return it == items.end() ? nullptr : &*it;
}

template <typename T, typename NameOf>
std::vector<std::string> namesOf(const std::vector<T> &items, const NameOf &nameOf)
{
    std::vector<std::string> names;
    for (const T &item : items)
        names.push_back(nameOf(item));
    return names;
}

} // namespace

std::vector<fs::path> workloadFolders(const fs::path &root)
{
    return foldersWith(root / "workloads", "workload.toml");
}

std::vector<fs::path> lineageFolders(const fs::path &root)
{
    std::vector<fs::path> folders;
    for (const fs::path &workload : workloadFolders(root)) {
        for (fs::path &folder : foldersWith(workload / "lineages", "lineage.toml"))
            folders.push_back(std::move(folder));
    }
    return folders;
}

std::vector<fs::path> cardFolders(const fs::path &root)
{
    return foldersWith(root / "skills", "card.toml");
}

std::vector<std::string> Workspace::workloadNames() const
{
    return namesOf(workloads, [](const workload::Workload &workload) { return workload.name; });
}

std::vector<std::string> Workspace::lineageKeys() const
{
    return namesOf(lineages, [](const lineage::Lineage &lineage) { return lineage.key(); });
}

std::vector<std::string> Workspace::cardNames() const
{
    return namesOf(cards, [](const skills::CardRecord &record) { return record.card.name; });
}

const workload::Workload *Workspace::findWorkload(std::string_view name) const
{
    return findSorted(workloads, [&](const workload::Workload &workload) { return workload.name == name; });
}

const lineage::Lineage *Workspace::findLineage(std::string_view key) const
{
    return findSorted(lineages, [&](const lineage::Lineage &lineage) { return lineage.key() == key; });
}

const skills::CardRecord *Workspace::findCard(std::string_view name) const
{
    return findSorted(cards, [&](const skills::CardRecord &record) { return record.card.name == name; });
}

const gate::Trial *Workspace::findTrial(std::string_view id) const
{
    for (const lineage::Lineage &lineage : lineages) {
        if (const gate::Trial *trial = lineage.findTrial(id))
            return trial;
    }
    return nullptr;
}

Result<Workspace> openWorkspace(const fs::path &root)
{
    if (!isWorkspace(root))
        return fail(ErrorCode::NotFound,
                    "'" + root.string() + "' is no workspace: it needs the folders workloads/ and skills/.");
    Workspace workspace;
    workspace.root = root;
    for (const fs::path &folder : workloadFolders(root)) {
        const files::PassedOver passedOver;
        Result<workload::Workload> workload = workload::readWorkload(folder);
        if (std::string sentence = passedOver.sentence((folder / "workload.toml").string());
            !sentence.empty())
            workspace.problems.push_back({ErrorCode::InvalidInput, std::move(sentence), {}});
        if (workload)
            workspace.workloads.push_back(std::move(*workload));
        else
            workspace.problems.push_back(workload.error());
    }
    for (Result<lineage::Lineage> &lineage : readLineages(lineageFolders(root))) {
        if (lineage)
            workspace.lineages.push_back(std::move(*lineage));
        else
            workspace.problems.push_back(lineage.error());
    }
    std::sort(workspace.lineages.begin(), workspace.lineages.end(),
              [](const lineage::Lineage &a, const lineage::Lineage &b) { return a.key() < b.key(); });
    workspace.cards = skills::CardStore(root / "skills").readAll(&workspace.problems);
    return workspace;
}

Result<fs::path> findWorkspace(const fs::path &start)
{
    std::error_code problem;
    fs::path folder = fs::absolute(start, problem).lexically_normal();
    if (problem)
        return fail(ErrorCode::Io, "Cannot find '" + start.string() + "': " + problem.message() + '.');
    for (;; folder = folder.parent_path()) {
        if (isWorkspace(folder))
            return folder;
        if (folder == folder.parent_path())
            break;
    }
    return fail(ErrorCode::NotFound, "There is no workspace at or above '" + start.string()
                                         + "': a folder with workloads/ and skills/.");
}

} // namespace klineage
