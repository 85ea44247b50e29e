// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/providers/manualdesk.h"

#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace klineage::ui {

class RunController;

/// Where a person answers a run's question: what is asked above, the reply below.
class AnswerPage : public QWidget
{
    Q_OBJECT

public:
    explicit AnswerPage(RunController *controller, QWidget *parent = nullptr);

    /// Another question empties the field; the same one, and none, leave what was written.
    void setQuestion(const std::optional<llm::ManualDesk::Pending> &question);
    [[nodiscard]] QPlainTextEdit *field() const { return m_field; }
    void handIn();

signals:
    void message(const QString &text);

private:
    RunController *m_controller;
    int m_number = 0;
    QPlainTextEdit *m_question;
    QPlainTextEdit *m_field;
    QLabel *m_hint;
    QPushButton *m_hand;
};

} // namespace klineage::ui
