// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"

#include <optional>

namespace klineage::ui {

/// A line of one side that should stay where it is on the screen.
struct Anchor {
    Side side = Side::Right;
    int line = 0;
};

/// Where the code of a row of one document is in another one. Neighbouring steps share a text (the right side of one is the left
/// side of the next), and a line of it is found at once; otherwise the line with the same content that is nearest is taken, and failing
/// that the line with the same number. Nothing when the new document has no lines.
[[nodiscard]] std::optional<Anchor> findAnchor(const Document &before, int diffRow, const Document &after);

} // namespace klineage::ui
