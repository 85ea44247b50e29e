// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QFrame>

class QLabel;
class QPlainTextEdit;
class QToolButton;

namespace klineage::ui {

struct Chip;
class ChipLabel;

/// What the gate said about the draft, in one line below the code: chips and the sentence, as much of it as fits. The whole sentence,
/// its evidence and the hint are folded away; unfolded, they scroll. What is undecided says why first, and may be gated again.
class VerdictStrip : public QFrame
{
    Q_OBJECT

public:
    explicit VerdictStrip(QWidget *parent = nullptr);
    void setTrial(const gate::Trial &trial);
    void setRunning(const QString &doing,
                    const QString &text); ///< while a trial is in flight; doing: in a word
    void setFailure(const QString &text); ///< the gate itself could not run
    void setStale(bool stale);            ///< a trial that is shown is of another text than the one above it
    void clear();                         ///< hides the strip
    [[nodiscard]] QToolButton *again() const
    {
        return m_again;
    } ///< seen where the trial left open what it was asked

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void setSentence(const Chip &status, const QString &text);
    /// details: what the sentence does not say; may be empty
    void say(const QString &sentence, const QString &details);
    void fit();

    ChipLabel *m_status;
    ChipLabel *m_change;
    ChipLabel *m_stale;
    QLabel *m_line;
    QToolButton *m_again;
    QToolButton *m_more;
    QPlainTextEdit *m_details;
    bool m_isTrial = false; ///< not a run in flight, nor a failure
    bool m_isOpen = false;  ///< a trial that is undecided against its parent
    QString m_sentence;
    QString m_rest; ///< of the details
};

} // namespace klineage::ui
