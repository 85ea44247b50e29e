// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/guidebar.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>

namespace klineage::ui {

GuideBar::GuideBar(QWidget *parent)
    : QFrame(parent)
    , m_text(new QLabel)
{
    setObjectName(QStringLiteral("guideBar"));
    setAccessibleName(tr("Guide"));
    m_text->setTextFormat(Qt::PlainText);
    m_text->setWordWrap(true);
    auto *close = new QPushButton(tr("Got it"));
    close->setToolTip(
        tr("Put the guide away for good (Esc). The command \"Show the guide\" brings it back."));
    connect(close, &QPushButton::clicked, this, &GuideBar::dismissed);
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(12, 7, 8, 7);
    row->setSpacing(12);
    row->addWidget(m_text, 1);
    row->addWidget(close, 0, Qt::AlignVCenter);
    setFocusProxy(close);
}

void GuideBar::setLines(const QStringList &lines)
{
    m_text->setText(lines.join(QLatin1Char('\n')));
    setAccessibleDescription(lines.join(QLatin1Char(' ')));
}

QStringList GuideBar::lines() const
{
    return m_text->text().split(QLatin1Char('\n'));
}

void GuideBar::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Escape)
        emit dismissed();
    else
        QFrame::keyPressEvent(event);
}

} // namespace klineage::ui
