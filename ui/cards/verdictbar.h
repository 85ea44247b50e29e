// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <QList>
#include <QPointer>
#include <QWidget>

#include <functional>

class QAction;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QToolButton;

namespace klineage::ui {

/// Says which card a verdict is about and how it stands, has a button for each command, and asks for reasons in place.
class VerdictBar : public QWidget
{
    Q_OBJECT

public:
    explicit VerdictBar(QWidget *parent = nullptr);

    /// Buttons that do and are called what the commands are, in rows. shortText replaces `text` where a row does not fit.
    struct Button {
        QAction *action = nullptr;
        QString text;
        QString shortText;
        bool isPrimary = false;
    };
    void setButtons(const QList<QList<Button>> &rows);

    /// The card that the verdicts go to: named in the bar.
    void setCard(const skills::CardRecord &record, bool hasDraft);
    /// Cards that were selected together: verdicts go to all of them.
    void setCards(const QStringList &names);
    /// In whose name verdicts are given. change: the command that changes it.
    void setReviewer(const QString &name, QAction *change);
    /// Instead of how the card stands: why a verdict could not be written.
    void showProblem(const QString &text);

    /// Asks in a line above the buttons; Enter answers, Esc leaves it. The focus goes back to where it was.
    void ask(const QString &question, const QString &confirm, const QString &prefilled,
             const std::function<void(const QString &)> &answered);
    /// As ask(), of what needs no text: Enter agrees.
    void confirm(const QString &question, const QString &confirm, const std::function<void()> &agreed);
    void stopAsking();
    [[nodiscard]] bool isAsking() const;
    [[nodiscard]] QString standing() const;

signals:
    void askingEnded();

protected:
    void resizeEvent(QResizeEvent *event) override;

private:
    void answer();
    void startAsking();
    void nameButtons();

    struct Shown {
        Button wanted;
        QPushButton *button = nullptr;
    };
    QList<QList<Shown>> m_rows;
    QLabel *m_standing;
    QToolButton *m_reviewer;
    QWidget *m_buttonArea;
    QWidget *m_asking;
    QLabel *m_question;
    QLineEdit *m_reason;
    QPushButton *m_confirm;
    QPointer<QWidget> m_focusBefore;
    std::function<void(const QString &)> m_answered;
};

} // namespace klineage::ui
