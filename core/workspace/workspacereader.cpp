// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/workspacereader.h"

#include "core/skills/store.h"
#include "core/workspace/folders.h"

#include <algorithm>

#include <sys/stat.h>

namespace klineage {

namespace {

namespace fs = std::filesystem;

/// Of the visible entries of a folder: a folder in it, as branches/, changes when it gets a file.
std::string stampOf(const fs::path &folder)
{
    std::vector<std::string> entries;
    std::error_code problem;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
        const std::string name = it->path().filename().string();
        struct stat info = {};
        if (name.starts_with('.') || ::stat(it->path().c_str(), &info) != 0)
            continue;
        entries.push_back(name + ' ' + std::to_string(info.st_ino) + ' ' + std::to_string(info.st_size) + ' '
                          + std::to_string(info.st_mtim.tv_sec) + '.' + std::to_string(info.st_mtim.tv_nsec));
    }
    std::sort(entries.begin(), entries.end());
    std::string stamp;
    for (const std::string &entry : entries)
        stamp += entry + '\n';
    return stamp;
}

/// Calls read for what differs, and lists what is no more.
template <typename Stamps, typename Read>
void compare(const Stamps &before, const Stamps &now, WorkspaceChanges &changes, const Read &read)
{
    for (const auto &[folder, stamp] : now) {
        const auto old = before.find(folder);
        if (old == before.end() || old->second != stamp)
            read(folder);
    }
    for (const auto &[folder, stamp] : before) {
        if (!now.contains(folder))
            changes.gone.push_back(folder);
    }
}

template <typename Item, typename KeyOf>
void put(std::vector<Item> &items, Item item, const KeyOf &keyOf)
{
    const auto place =
        std::lower_bound(items.begin(), items.end(), keyOf(item),
                         [&](const Item &other, const std::string &key) { return keyOf(other) < key; });
    if (place != items.end() && keyOf(*place) == keyOf(item))
        *place = std::move(item);
    else
        items.insert(place, std::move(item));
}

} // namespace

void applyChanges(WorkspaceChanges changes, Workspace &workspace)
{
    const auto isGone = [&](const auto &item) {
        return std::find(changes.gone.begin(), changes.gone.end(), item.directory) != changes.gone.end();
    };
    std::erase_if(workspace.lineages, isGone);
    std::erase_if(workspace.cards, isGone);
    for (lineage::Lineage &lineage : changes.lineages)
        put(workspace.lineages, std::move(lineage), [](const lineage::Lineage &l) { return l.key(); });
    for (skills::CardRecord &card : changes.cards)
        put(workspace.cards, std::move(card), [](const skills::CardRecord &c) { return c.card.name; });
}

WorkspaceReader::WorkspaceReader(fs::path root)
    : m_root(std::move(root))
{}

WorkspaceReader::Stamps WorkspaceReader::stampsOf(const std::vector<fs::path> &folders)
{
    Stamps stamps;
    for (const fs::path &folder : folders)
        stamps[folder] = stampOf(folder);
    return stamps;
}

// Stamps are taken before the files are read: what is written meanwhile is read again the next time.

Result<Workspace> WorkspaceReader::open()
{
    m_lineages = stampsOf(lineageFolders(m_root));
    m_cards = stampsOf(cardFolders(m_root));
    return openWorkspace(m_root);
}

WorkspaceChanges WorkspaceReader::readChanges()
{
    WorkspaceChanges changes;
    Stamps lineages = stampsOf(lineageFolders(m_root));
    compare(m_lineages, lineages, changes, [&](const fs::path &folder) {
        if (Result<lineage::Lineage> lineage = lineage::readLineage(folder))
            changes.lineages.push_back(std::move(*lineage));
        else
            changes.problems.push_back(lineage.error());
    });
    Stamps cards = stampsOf(cardFolders(m_root));
    const skills::CardStore store(m_root / "skills");
    compare(m_cards, cards, changes, [&](const fs::path &folder) {
        if (Result<skills::CardRecord> card = store.read(folder.filename().string()))
            changes.cards.push_back(std::move(*card));
        else
            changes.problems.push_back(card.error());
    });
    m_lineages = std::move(lineages);
    m_cards = std::move(cards);
    return changes;
}

} // namespace klineage
