// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/pages.h"

#include <QAbstractTextDocumentLayout>
#include <QTextDocument>
#include <QTextFrame>
#include <QTextLayout>
#include <QTextTable>

#include <algorithm>
#include <limits>

namespace klineage::ui {

namespace {

constexpr int shortParagraph = 4; ///< lines
constexpr int smallTable = 9;     ///< rows, its header too

/// What is never parted. Bands touch: each goes on to the next one's top.
struct Piece {
    Band band;
    Band header;            ///< of the table that it is a further row of
    bool keepsNext = false; ///< nothing may come between it and the next one
};

class Cutter
{
public:
    explicit Cutter(const QTextDocument &document)
        : m_layout(*document.documentLayout())
    {
        for (auto it = document.rootFrame()->begin(); !it.atEnd(); ++it) {
            if (const auto *table = qobject_cast<QTextTable *>(it.currentFrame()))
                addTable(*table);
            else if (it.currentBlock().isValid()
                     && !it.currentBlock().text().isEmpty()) // a table may lie over one
                addBlock(it.currentBlock());
        }
        for (std::size_t i = 0; i + 1 < m_pieces.size(); ++i)
            m_pieces[i].band.bottom = m_pieces[i + 1].band.top;
        if (!m_pieces.empty())
            m_pieces.back().band.bottom = std::max(m_pieces.back().band.bottom, document.size().height());
    }

    [[nodiscard]] const std::vector<Piece> &pieces() const { return m_pieces; }

private:
    /// A paragraph: whole when it is short, else line by line.
    void addBlock(const QTextBlock &block)
    {
        const double top = m_layout.blockBoundingRect(block).top();
        const int lines = block.layout()->lineCount();
        if (block.blockFormat().nonBreakableLines())
            keepLast(); // a command and what it is for
        if (lines <= shortParagraph)
            m_pieces.push_back({{top, m_layout.blockBoundingRect(block).bottom()}, {}, leads(block)});
        for (int i = 0; lines > shortParagraph && i < lines; ++i)
            m_pieces.push_back({{top + (i == 0 ? 0 : block.layout()->lineAt(i).rect().top()),
                                 top + block.layout()->lineAt(i).rect().bottom()},
                                {},
                                false});
    }

    /// Headings and pictures, whose caption follows.
    static bool leads(const QTextBlock &block)
    {
        return block.blockFormat().headingLevel() > 0
               || block.text().contains(QChar::ObjectReplacementCharacter);
    }

    void keepLast()
    {
        if (!m_pieces.empty())
            m_pieces.back().keepsNext = true;
    }

    void addTable(const QTextTable &table)
    {
        keepLast(); // what is said of it
        const int headers = table.format().headerRowCount();
        const QRectF frame = m_layout.frameBoundingRect(const_cast<QTextTable *>(&table));
        std::vector<double> tops;
        for (int row = 0; row < table.rows(); ++row)
            tops.push_back(row == 0 ? frame.top() : topOfRow(table, row));
        tops.push_back(frame.bottom());
        const auto at = [&tops](int row) { return tops[static_cast<std::size_t>(row)]; };
        const Band header{headers > 0 ? at(0) : 0, headers > 0 ? at(headers) : 0};
        for (int row = 0; row < table.rows(); ++row) {
            const bool isSmall = headers == 0 || table.rows() <= smallTable;
            const bool keepsNext = row < headers || (isSmall && row + 1 < table.rows());
            m_pieces.push_back({{at(row), at(row + 1)}, row > headers ? header : Band(), keepsNext});
        }
    }

    [[nodiscard]] double topOfRow(const QTextTable &table, int row) const
    {
        double top = std::numeric_limits<double>::max();
        for (int column = 0; column < table.columns(); ++column) {
            const QTextTableCell cell = table.cellAt(row, column);
            const double padding = cell.format().toTableCellFormat().topPadding();
            const QTextBlock first = cell.firstCursorPosition().block();
            top = std::min(top, m_layout.blockBoundingRect(first).top() - padding);
        }
        return top;
    }

    QAbstractTextDocumentLayout &m_layout;
    std::vector<Piece> m_pieces;
};

} // namespace

std::vector<Page> pagesOf(const QTextDocument &document, double height)
{
    const Cutter cutter(document);
    const std::vector<Piece> &pieces = cutter.pieces();
    std::vector<Page> pages;
    for (std::size_t begin = 0; begin < pieces.size();) {
        Page page{pieces[begin].header, {pieces[begin].band.top, 0}};
        const double bottom = page.body.top + height - page.header.height();
        std::size_t end = begin;
        while (end < pieces.size() && pieces[end].band.bottom <= bottom)
            ++end;
        // Back to where a page may end, unless that is all of it.
        std::size_t good = end;
        while (end < pieces.size() && good > begin && pieces[good - 1].keepsNext)
            --good;
        end = good > begin ? good : end;
        if (end > begin) {
            page.body.bottom = pieces[end - 1].band.bottom;
            pages.push_back(page);
        } else {
            // Higher than a page: cut like a picture.
            end = begin + 1;
            for (double top = page.body.top; top < pieces[begin].band.bottom; top += height)
                pages.push_back({{}, {top, std::min(top + height, pieces[begin].band.bottom)}});
        }
        begin = end;
    }
    return pages;
}

} // namespace klineage::ui
