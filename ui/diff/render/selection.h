// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"

namespace klineage::ui {

/// A place between two characters of one side's text.
struct TextPosition {
    int line = 0;
    int unit = 0; ///< UTF-16 units from the beginning of the line

    friend auto operator<=>(const TextPosition &, const TextPosition &) = default;
};

/// A selection belongs to one side: code is copied from one version, never from a mixture.
struct TextSelection {
    Side side = Side::Right;
    TextPosition anchor;
    TextPosition cursor;

    [[nodiscard]] bool isEmpty() const { return anchor == cursor; }
    [[nodiscard]] TextPosition begin() const { return std::min(anchor, cursor); }
    [[nodiscard]] TextPosition end() const { return std::max(anchor, cursor); }
};

/// Units [begin, end) of a line that are selected; end is beyond the line's text when its newline is selected too.
struct SelectedUnits {
    int begin = 0;
    int end = 0;
    bool newline = false;
};
[[nodiscard]] SelectedUnits selectedUnits(const TextSelection &selection, int line, int lineLength);

[[nodiscard]] QString selectedText(const Document &document, const TextSelection &selection);
/// The word (letters, digits, underscore) at a position, or the one character there.
[[nodiscard]] TextSelection wordAt(const Document &document, Side side, TextPosition position);

} // namespace klineage::ui
