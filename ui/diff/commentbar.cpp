// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/commentbar.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include <utility>

namespace klineage::ui {

namespace {

constexpr int longestComment = 8192; // characters: fewer bytes than core takes

} // namespace

CommentBar::CommentBar(QWidget *parent)
    : QWidget(parent)
    , m_question(new QLabel(this))
    , m_text(new QLineEdit(this))
    , m_confirm(new QPushButton(this))
{
    setProperty("notExported", true);
    m_text->setObjectName(QStringLiteral("commentText"));
    m_text->setMaxLength(longestComment / 2);
    m_confirm->setAutoDefault(false);
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(10, 5, 10, 5);
    row->addWidget(m_question);
    row->addWidget(m_text, 1);
    row->addWidget(m_confirm);
    connect(m_text, &QLineEdit::textChanged, this,
            [this](const QString &text) { m_confirm->setEnabled(!text.trimmed().isEmpty()); });
    connect(m_confirm, &QPushButton::clicked, this, &CommentBar::answer);
    hide();
}

void CommentBar::ask(const QString &question, const QString &confirm, const QString &prefilled,
                     const std::function<void(const QString &)> &answered)
{
    if (isHidden())
        m_focusBefore = QApplication::focusWidget();
    m_answered = answered;
    m_question->setText(question);
    m_confirm->setText(confirm);
    m_text->setAccessibleName(question);
    m_text->setText(prefilled);
    m_text->selectAll();
    m_confirm->setEnabled(!prefilled.trimmed().isEmpty());
    show();
    m_text->setFocus(Qt::ShortcutFocusReason);
}

void CommentBar::stopAsking()
{
    if (isHidden())
        return;
    const bool hadFocus = isAncestorOf(QApplication::focusWidget());
    m_answered = nullptr;
    hide();
    if (hadFocus && m_focusBefore)
        m_focusBefore->setFocus();
}

QString CommentBar::question() const
{
    return isHidden() ? QString() : m_question->text();
}

void CommentBar::keyPressEvent(QKeyEvent *event)
{
    switch (event->key()) {
    case Qt::Key_Escape:
        stopAsking();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        answer();
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void CommentBar::answer()
{
    const QString text = m_text->text().trimmed();
    if (text.isEmpty())
        return;
    const auto answered = std::exchange(m_answered, nullptr);
    stopAsking();
    if (answered)
        answered(text);
}

} // namespace klineage::ui
