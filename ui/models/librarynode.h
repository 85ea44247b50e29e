// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/librarymodel.h"

namespace klineage::ui {

/// A row of the library with its texts. Owned by its parent.
struct LibraryModel::Node {
    Kind kind = Kind::Section;
    QString key;
    QString title;
    QString value;
    Tone valueTone = Tone::Neutral;
    QString search;
    QString tooltip;
    QString viewedKey; ///< of Viewed; cards only
    Chip chip;
    Node *parent = nullptr;
    int row = 0;
    std::vector<std::unique_ptr<Node>> children;

    Node *add(Kind childKind, QString childKey, QString childTitle);
    [[nodiscard]] bool hasShapeOf(const Node &other) const; ///< same rows, whatever they say
};

[[nodiscard]] std::unique_ptr<LibraryModel::Node> makeLibrary(const Workspace &workspace);

} // namespace klineage::ui
