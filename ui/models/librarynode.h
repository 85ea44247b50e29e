// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/cardfacets.h"
#include "ui/models/librarymodel.h"

#include <QHash>

#include <array>

namespace klineage::ui {

/// A row of the library with its texts. Owned by its parent. What a search through thousands of them reads comes first.
struct LibraryModel::Node {
    Kind kind = Kind::Section;
    int row = 0;
    QString key;
    std::vector<std::unique_ptr<Node>> children;
    QString title;
    QString value;
    Tone valueTone = Tone::Neutral;
    QString search;
    QString tooltip;
    QString viewedKey; ///< of Viewed; cards only
    QString runsHere;  ///< device of this machine that its kernels run on; lineages only
    CardFacets facets; ///< cards only; `viewed` is left out
    Chip chip;
    Node *parent = nullptr;

    Node *add(Kind childKind, QString childKey, QString childTitle);
    [[nodiscard]] bool hasShapeOf(const Node &other) const; ///< same rows, whatever they say
};

/// Facets by card, made anew where what they rest on is another than before: a lint of all cards takes longer than a verdict may.
class LibraryModel::FacetCache
{
public:
    [[nodiscard]] const CardFacets &facetsOf(const Workspace &workspace, const skills::CardRecord &record);
    /// How much the workspace's lineages hold: to be said before facetsOf().
    void setWorkspace(const Workspace &workspace);

private:
    using Stamp = std::array<std::size_t, 6>;
    struct Held {
        Stamp stamp{};
        CardFacets facets;
    };
    std::size_t m_recorded = 0;
    QHash<QString, Held> m_held;
};

[[nodiscard]] std::unique_ptr<LibraryModel::Node> makeLibrary(const Workspace &workspace,
                                                              LibraryModel::FacetCache &facets,
                                                              const std::vector<gate::DeviceInfo> &devices);

} // namespace klineage::ui
