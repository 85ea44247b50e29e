// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/columnscale.h"

#include "ui/style/fonts.h"

#include <QEvent>
#include <QHeaderView>
#include <QTableView>

namespace klineage::ui {

ColumnScale::ColumnScale(QTableView *table)
    : QObject(table)
    , m_table(table)
    , m_scale(textScale())
{
    table->installEventFilter(this);
}

bool ColumnScale::eventFilter(QObject *watched, QEvent *event)
{
    const bool isFont = event->type() == QEvent::FontChange || event->type() == QEvent::ApplicationFontChange;
    if (isFont && textScale() != m_scale)
        rescale();
    return QObject::eventFilter(watched, event);
}

void ColumnScale::rescale()
{
    QHeaderView *header = m_table->horizontalHeader();
    for (int column = 0; column < header->count(); ++column) {
        const bool takesTheRest =
            header->stretchLastSection() && header->visualIndex(column) == header->count() - 1;
        const QHeaderView::ResizeMode mode = header->sectionResizeMode(column);
        if (header->isSectionHidden(column) || takesTheRest || mode == QHeaderView::Stretch
            || mode == QHeaderView::ResizeToContents)
            continue;
        // Not from the rounded width of the other scale: it would creep.
        double &width = m_widths[column];
        if (qRound(width * m_scale) != header->sectionSize(column))
            width = header->sectionSize(column) / m_scale;
        header->resizeSection(column, qRound(width * textScale()));
    }
    // Once the header has the new font too: with a larger one it takes no smaller rows.
    QHeaderView *rows = m_table->verticalHeader();
    const int height = qRound(rows->defaultSectionSize() / m_scale * textScale());
    QMetaObject::invokeMethod(
        rows, [rows, height] { rows->setDefaultSectionSize(height); }, Qt::QueuedConnection);
    m_scale = textScale();
}

} // namespace klineage::ui
