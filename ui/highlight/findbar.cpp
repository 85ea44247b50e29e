// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/findbar.h"

#include "ui/style/icons.h"
#include "ui/style/keyedcommand.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QToolButton>

namespace klineage::ui {

FindBar::FindBar(QWidget *panel, QWidget *text, const QString &name, const QString &where)
    : QWidget(panel)
    , m_edit(new QLineEdit(this))
    , m_count(new QLabel(this))
    , m_close(addKeyedCommand(this, name + QStringLiteral(".closeFind"), tr("Close the search"),
                              QKeySequence(Qt::Key_Escape)))
{
    QAction *find = addKeyedCommand(panel, name + QStringLiteral(".find"), tr("Find"), QKeySequence::Find);
    QAction *next = addKeyedCommand(panel, name + QStringLiteral(".findNext"), tr("Next match"),
                                    QKeySequence(Qt::Key_F3));
    QAction *previous = addKeyedCommand(panel, name + QStringLiteral(".findPrevious"), tr("Previous match"),
                                        QKeySequence(Qt::SHIFT | Qt::Key_F3));
    find->setIcon(icon(QStringLiteral("search")));
    m_commands = {find, next, previous, m_close};
    connect(find, &QAction::triggered, this, &FindBar::openWanted);
    connect(next, &QAction::triggered, this, &FindBar::nextWanted);
    connect(previous, &QAction::triggered, this, &FindBar::previousWanted);
    connect(m_close, &QAction::triggered, this, &FindBar::close);
    text->addAction(m_close);
    m_close->setEnabled(false);

    m_edit->setPlaceholderText(where);
    m_edit->setClearButtonEnabled(true);
    m_edit->setAccessibleName(where);
    m_edit->setToolTip(tr("The case of letters counts when there is a capital among them"));
    m_edit->setMaximumWidth(360);
    m_count->setObjectName(QStringLiteral("findCount"));
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 4, 8, 4);
    layout->setSpacing(6);
    layout->addWidget(m_edit, 1);
    addButton(QStringLiteral("previous"), tr("Previous match"), previous);
    addButton(QStringLiteral("next"), tr("Next match"), next);
    layout->addWidget(m_count);
    layout->addStretch(1);
    addButton(QStringLiteral("close"), tr("Close"), m_close);
    connect(m_edit, &QLineEdit::textChanged, this, &FindBar::textChanged);
    setFocusProxy(m_edit);
    hide();
}

void FindBar::addButton(const QString &iconName, const QString &tip, QAction *action)
{
    auto *button = new QToolButton(this);
    button->setIcon(icon(iconName));
    button->setAutoRaise(true);
    button->setAccessibleName(tip);
    button->setFocusPolicy(Qt::TabFocus);
    setKeyedToolTip(button, tip, action);
    connect(button, &QToolButton::clicked, action, &QAction::trigger);
    layout()->addWidget(button);
}

void FindBar::open(const QString &text)
{
    show();
    m_close->setEnabled(true);
    if (!text.isEmpty())
        m_edit->setText(text);
    m_edit->selectAll();
    m_edit->setFocus(Qt::ShortcutFocusReason);
    emit textChanged(m_edit->text());
}

QString FindBar::text() const
{
    return m_edit->text();
}

void FindBar::setCount(int current, int count, bool truncated)
{
    const QLocale locale = QLocale::c();
    if (m_edit->text().isEmpty())
        m_count->clear();
    else if (count == 0)
        m_count->setText(tr("No match"));
    else if (current < 0)
        m_count->setText(truncated ? tr("More than %1").arg(locale.toString(count))
                                   : tr("%1 in all").arg(locale.toString(count)));
    else if (truncated)
        m_count->setText(tr("%1 of more than %2").arg(locale.toString(current + 1), locale.toString(count)));
    else
        m_count->setText(tr("%1 of %2").arg(locale.toString(current + 1), locale.toString(count)));
}

void FindBar::keyPressEvent(QKeyEvent *event)
{
    if (event->key() != Qt::Key_Return && event->key() != Qt::Key_Enter)
        QWidget::keyPressEvent(event);
    else if (event->modifiers() & Qt::ShiftModifier)
        emit previousWanted();
    else
        emit nextWanted();
}

void FindBar::close()
{
    hide();
    m_close->setEnabled(false);
    emit closed();
}

} // namespace klineage::ui
