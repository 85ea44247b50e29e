// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/report/document.h"

#include <functional>
#include <string>

namespace klineage::report {

/// GitHub's Markdown: tables as tables, no pictures. Nothing in a text is taken for markup.
[[nodiscard]] std::string asMarkdown(const Document &document);

/// What an HTML page takes from its maker.
struct HtmlParts {
    std::string style; ///< the style sheet; empty: the page's own, light and ready to print
    /// The markup of a figure: an <svg>, an <img>; an empty answer leaves the figure out.
    std::function<std::string(const Figure &figure)> drawn;
    bool hasData = false;        ///< each table carries itself as a CSV file that can be saved from the page
    std::string tableAttributes; ///< " width=\"100%\"", for a reader who does not get it from the style sheet
};

/// RFC 4180: a heading and the rows, lines end with CRLF. A table's data, else its texts.
[[nodiscard]] std::string asCsv(const Table &table);

/// One page that is well-formed XML and needs no other file: no script, no link, no font from elsewhere.
[[nodiscard]] std::string asHtml(const Document &document, const HtmlParts &parts);

} // namespace klineage::report
