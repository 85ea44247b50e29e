// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <map>

namespace klineage {

/// What differs from a workspace as it was read before. What cannot be read any more stays as it was.
struct WorkspaceChanges {
    std::vector<lineage::Lineage> lineages;  ///< new, or with a file that changed
    std::vector<skills::CardRecord> cards;   ///< the same
    std::vector<std::filesystem::path> gone; ///< folders of lineages and cards that are no more
    std::vector<Error> problems;             ///< of changed folders; each is told once
};
void applyChanges(WorkspaceChanges changes, Workspace &workspace);

/// Reads a workspace, and from then on only what changed in it: a lineage or a card is read again when one of its files has another size,
/// time or inode than before. New workloads are seen by open() alone. For one thread at a time.
class WorkspaceReader
{
public:
    /// Nothing counts as read yet: readChanges() reads all lineages and cards.
    explicit WorkspaceReader(std::filesystem::path root);

    [[nodiscard]] Result<Workspace> open();
    [[nodiscard]] WorkspaceChanges readChanges();

private:
    /// Folders with a state of their own, by path.
    using Stamps = std::map<std::filesystem::path, std::string>;
    [[nodiscard]] static Stamps stampsOf(const std::vector<std::filesystem::path> &folders);

    std::filesystem::path m_root;
    Stamps m_lineages;
    Stamps m_cards;
};

} // namespace klineage
