// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/codedelegate.h"

#include "ui/highlight/codepalette.h"
#include "ui/machine/codemodel.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QFontMetrics>
#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int cellPadding = 6;
constexpr int markWidth = 3;
constexpr int heatRoom = 34; // of a bar that stands beside its number
constexpr int heatHeight = 8;

TokenStyle styleOf(CodeToken token)
{
    switch (token) {
    case CodeToken::Predicate:
        return TokenStyle::Control;
    case CodeToken::Opcode:
        return TokenStyle::Keyword;
    case CodeToken::Number:
        return TokenStyle::Number;
    case CodeToken::Label:
        break;
    }
    return TokenStyle::Label;
}

/// As far as there is room; what is cut off ends in an ellipsis.
void paintText(QPainter *painter, const QRect &room, const std::string &text,
               const std::vector<CodeSpan> &spans)
{
    const CodePalette colors = CodePalette::from(Theme::current());
    const QFontMetrics metrics(painter->font());
    const int baseline = room.top() + (room.height() + metrics.ascent() - metrics.descent()) / 2;
    const double character =
        std::max(1.0, QFontMetricsF(painter->font()).horizontalAdvance(QLatin1Char('0')));
    const auto fitting = static_cast<std::size_t>(std::max(0.0, room.width() / character));
    const bool isCut = text.size() > fitting;
    const std::size_t end = isCut ? std::max<std::size_t>(fitting, 1) - 1 : text.size();
    const auto draw = [&](std::size_t from, std::size_t to, const QColor &color) {
        if (from >= to)
            return;
        painter->setPen(color);
        painter->drawText(QPointF(room.left() + static_cast<double>(from) * character, baseline),
                          QString::fromLatin1(text.data() + from, static_cast<qsizetype>(to - from)));
    };
    std::size_t at = 0;
    for (const CodeSpan &span : spans) {
        if (span.begin >= end)
            break;
        draw(at, span.begin, colors.text);
        at = std::min(end, span.begin + span.length);
        draw(span.begin, at, colors.token(styleOf(span.token)));
    }
    draw(at, end, colors.text);
    if (isCut) {
        painter->setPen(colors.muted);
        painter->drawText(QPointF(room.left() + static_cast<double>(end) * character, baseline),
                          QStringLiteral("…"));
    }
}

} // namespace

CodeDelegate::CodeDelegate(const CodeModel *model, QObject *parent)
    : QStyledItemDelegate(parent)
    , m_model(model)
{}

void CodeDelegate::paintGround(QPainter *painter, const QStyleOptionViewItem &option,
                               const QModelIndex &index, const CodeRow &row) const
{
    const Theme &theme = Theme::current();
    const bool marked = m_model->isMarked(index.row());
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    if (selected)
        painter->fillRect(option.rect, theme.selection);
    else if (row.kind == CodeRow::Kind::Kernel)
        painter->fillRect(option.rect, theme.header);
    else if (marked)
        painter->fillRect(option.rect, theme.hover);
    if (marked && index.column() == CodeModel::LineColumn)
        painter->fillRect(QRect(option.rect.topLeft(), QSize(markWidth, option.rect.height())), theme.accent);
}

/// The bar is of the hottest instruction, the number of all samples.
void CodeDelegate::paintSamples(QPainter *painter, const QStyleOptionViewItem &option,
                                const CodeRow &row) const
{
    const Theme &theme = Theme::current();
    const double share = static_cast<double>(row.samples)
                         / static_cast<double>(std::max<std::int64_t>(1, m_model->code()->mostSamples));
    QRect bar(option.rect.left() + cellPadding, option.rect.center().y() - heatHeight / 2 + 1,
              std::max(1, static_cast<int>(heatRoom * share)), heatHeight);
    painter->fillRect(bar, blend(theme.bad, theme.panel, 0.35 + 0.5 * share));
}

void CodeDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                         const QModelIndex &index) const
{
    const CodeRow *row = m_model->row(index.row());
    if (!row)
        return;
    painter->save();
    painter->setClipRect(option.rect);
    paintGround(painter, option, index, *row);
    const QRect room = option.rect.adjusted(cellPadding, 0, -cellPadding, 0);
    if (index.column() == CodeModel::InstructionColumn) {
        QFont font = codeFont();
        font.setBold(row->kind == CodeRow::Kind::Kernel);
        painter->setFont(font);
        paintText(painter, room, row->text,
                  row->kind == CodeRow::Kind::Kernel ? std::vector<CodeSpan>() : codeSpans(row->text));
    } else {
        if (index.column() == CodeModel::SamplesColumn && row->samples > 0)
            paintSamples(painter, option, *row);
        painter->setFont(option.font);
        painter->setPen(index.column() == CodeModel::SamplesColumn ? Theme::current().text
                                                                   : Theme::current().dim);
        const QString text = index.data().toString();
        painter->drawText(room,
                          index.column() < CodeModel::StallColumn ? Qt::AlignRight | Qt::AlignVCenter
                                                                  : Qt::AlignLeft | Qt::AlignVCenter,
                          painter->fontMetrics().elidedText(text, Qt::ElideRight, room.width()));
    }
    painter->restore();
}

int lineColumnWidth(int highestLine)
{
    const QFontMetrics metrics(QApplication::font());
    return std::max(metrics.horizontalAdvance(QString::number(std::max(highestLine, 9999))),
                    metrics.horizontalAdvance(CodeModel::tr("Line")))
           + 2 * cellPadding + markWidth;
}

int samplesColumnWidth()
{
    return QFontMetrics(QApplication::font()).horizontalAdvance(QStringLiteral("100.0 %")) + heatRoom
           + 3 * cellPadding;
}

int codeRowHeight()
{
    return QFontMetrics(codeFont()).height() + 3;
}

} // namespace klineage::ui
