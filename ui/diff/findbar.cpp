// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/findbar.h"

#include "ui/style/icons.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QToolButton>

namespace klineage::ui {

FindBar::FindBar(QWidget *parent)
    : QWidget(parent)
    , m_edit(new QLineEdit(this))
    , m_count(new QLabel(this))
{
    const auto button = [this](const QString &iconName, const QString &tip, auto signal) {
        auto *made = new QToolButton(this);
        made->setIcon(icon(iconName));
        made->setAutoRaise(true);
        made->setToolTip(tip);
        made->setAccessibleName(tip);
        made->setFocusPolicy(Qt::TabFocus);
        connect(made, &QToolButton::clicked, this, signal);
        return made;
    };
    m_edit->setPlaceholderText(tr("Find on both sides"));
    m_edit->setClearButtonEnabled(true);
    m_edit->setAccessibleName(tr("Find"));
    m_edit->setMaximumWidth(360);
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 4, 8, 4);
    layout->setSpacing(6);
    layout->addWidget(m_edit, 1);
    layout->addWidget(
        button(QStringLiteral("previous"), tr("Previous match (Shift+F3)"), &FindBar::previousWanted));
    layout->addWidget(button(QStringLiteral("next"), tr("Next match (F3)"), &FindBar::nextWanted));
    layout->addWidget(m_count);
    layout->addStretch(1);
    layout->addWidget(button(QStringLiteral("close"), tr("Close (Esc)"), [this] { close(); }));
    connect(m_edit, &QLineEdit::textChanged, this, &FindBar::textChanged);
    setFocusProxy(m_edit);
    hide();
}

void FindBar::open(const QString &text)
{
    show();
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
    else if (truncated)
        m_count->setText(tr("%1 of more than %2").arg(locale.toString(current + 1), locale.toString(count)));
    else
        m_count->setText(tr("%1 of %2").arg(locale.toString(current + 1), locale.toString(count)));
}

void FindBar::keyPressEvent(QKeyEvent *event)
{
    switch (event->key()) {
    case Qt::Key_Escape:
        close();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (event->modifiers() & Qt::ShiftModifier)
            emit previousWanted();
        else
            emit nextWanted();
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void FindBar::close()
{
    hide();
    emit closed();
}

} // namespace klineage::ui
