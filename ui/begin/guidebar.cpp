// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/guidebar.h"

#include "ui/style/keyedcommand.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

#include <utility>

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
    QAction *leave = addKeyedCommand(this, QStringLiteral("guide.dismiss"), tr("Put the guide away"),
                                     QKeySequence(Qt::Key_Escape));
    setKeyedToolTip(close, tr("Put the guide away for good. The command \"Show the guide\" brings it back."),
                    leave);
    connect(leave, &QAction::triggered, this, &GuideBar::dismissed);
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
    m_lines = lines;
    showLines();
}

void GuideBar::showLines()
{
    QStringList shown = m_lines;
    for (const qsizetype line : std::as_const(m_ticked))
        shown[line].prepend(QStringLiteral("✓ "));
    m_text->setText(shown.join(QLatin1Char('\n')));
    setAccessibleDescription(shown.join(QLatin1Char(' ')));
}

void GuideBar::tick(qsizetype line)
{
    if (!isVisible() || line >= m_lines.size())
        return;
    m_ticked.insert(line);
    showLines();
    if (m_ticked.size() == m_lines.size())
        emit dismissed();
}

void GuideBar::untick()
{
    m_ticked.clear();
    showLines();
}

QStringList GuideBar::lines() const
{
    return m_text->text().split(QLatin1Char('\n'));
}

} // namespace klineage::ui
