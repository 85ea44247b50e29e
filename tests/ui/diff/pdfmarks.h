// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QPointF>
#include <QRectF>

#include <vector>

namespace klineage::test {

/// What the pages of a PDF paint, in the order in which they do, in pixels of 1/96 inch from the top left corner: where a glyph begins,
/// or what is filled.
struct PdfMark {
    bool isGlyph = false;
    QPointF at;  ///< a glyph's place on its base line
    QRectF fill; ///< the bounds of a filled path
};

/// Of PDFs of Qt's own writer, whose streams are deflated and whose operators stand between blanks.
[[nodiscard]] std::vector<PdfMark> pdfMarks(const QByteArray &pdf, double pageHeight);

} // namespace klineage::test
