// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QWidget>

#include <functional>

class QLabel;
class QLineEdit;
class QPushButton;

namespace klineage::ui {

/// A line below the code that asks for a text: Enter answers, Esc leaves it, and the focus goes back to where it was.
class CommentBar : public QWidget
{
    Q_OBJECT

public:
    explicit CommentBar(QWidget *parent = nullptr);

    void ask(const QString &question, const QString &confirm, const QString &prefilled,
             const std::function<void(const QString &)> &answered);
    void stopAsking();
    [[nodiscard]] QString question() const;

protected:
    void keyPressEvent(QKeyEvent *event) override;

private:
    void answer();

    QLabel *m_question;
    QLineEdit *m_text;
    QPushButton *m_confirm;
    QPointer<QWidget> m_focusBefore;
    std::function<void(const QString &)> m_answered;
};

} // namespace klineage::ui
