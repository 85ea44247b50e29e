// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QFrame>

class QLabel;

namespace klineage::ui {

struct Chip;
class ChipLabel;

/// What the gate said about the draft: chips, the sentence, its evidence and the hint.
class VerdictStrip : public QFrame
{
    Q_OBJECT

public:
    explicit VerdictStrip(QWidget *parent = nullptr);
    void setTrial(const gate::Trial &trial);
    void setRunning(const QString &text); ///< while a trial is in flight
    void setFailure(const QString &text); ///< the gate itself could not run
    void clear();                         ///< hides the strip

private:
    void setSentence(const Chip &status, const QString &text);

    ChipLabel *m_status;
    ChipLabel *m_change;
    QLabel *m_message;
    QLabel *m_evidence;
    QLabel *m_hint;
};

} // namespace klineage::ui
