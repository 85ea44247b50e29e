// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/plainwidgets.h"

#include "ui/style/columnscale.h"
#include "ui/style/fonts.h"

#include <QEvent>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

namespace klineage::ui {

QTableView *makePlainTable(QAbstractItemModel *model, const QString &name)
{
    auto *table = new QTableView;
    table->setModel(model);
    table->setAccessibleName(name);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setTabKeyNavigation(false);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setFrameShape(QFrame::NoFrame);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 8);
    makePlainHeader(table->horizontalHeader());
    new ColumnScale(table);
    return table;
}

void makePlainHeader(QHeaderView *header)
{
    header->setHighlightSections(false);
    for (QWidget *part : {static_cast<QWidget *>(header),
                          header->viewport()}) // under a style sheet neither follows the other
        part->setFont(captionFont());
}

QLabel *makeMessageLabel(const QString &text)
{
    auto *label = new QLabel(text);
    label->setWordWrap(true);
    label->setAlignment(Qt::AlignCenter);
    label->setMargin(16);
    label->setEnabled(false);
    return label;
}

QWidget *makeMessagePage(QLabel *text, QPushButton *button)
{
    text->setWordWrap(true);
    text->setMargin(24);
    text->setAlignment(Qt::AlignCenter);
    button->setAutoDefault(false);
    auto *page = new QWidget;
    auto *column = new QVBoxLayout(page);
    column->addStretch(1);
    column->addWidget(text);
    column->addWidget(button, 0, Qt::AlignHCenter);
    column->addStretch(1);
    return page;
}

ElidedLabel::ElidedLabel(QWidget *parent)
    : QLabel(parent)
{
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
}

void ElidedLabel::setWhole(const QString &text)
{
    m_whole = text;
    setToolTip(text);
    setAccessibleName(text);
    fit();
}

void ElidedLabel::fit()
{
    setText(fontMetrics().elidedText(m_whole, Qt::ElideRight, contentsRect().width()));
}

void ElidedLabel::resizeEvent(QResizeEvent *event)
{
    QLabel::resizeEvent(event);
    fit();
}

void ElidedLabel::changeEvent(QEvent *event)
{
    QLabel::changeEvent(event);
    if (event->type() == QEvent::FontChange)
        fit();
}

} // namespace klineage::ui
