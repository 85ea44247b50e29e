// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

class QTextDocument;

namespace klineage::ui {

/// From top to bottom of a document that was laid out without pages.
struct Band {
    double top = 0;
    double bottom = 0;

    [[nodiscard]] double height() const { return bottom - top; }
};

/// What stands on a page: the table's header again, where a table goes on (else empty), and what follows.
struct Page {
    Band header;
    Band body;
};

/// Pages at most that high, so that no row of a table and no line is cut, and no heading and no figure is parted from what follows it.
/// What is higher than a page by itself is cut all the same. The document has a text width and no page size.
[[nodiscard]] std::vector<Page> pagesOf(const QTextDocument &document, double height);

} // namespace klineage::ui
