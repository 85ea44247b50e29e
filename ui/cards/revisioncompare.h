// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/revisions.h"
#include "ui/highlight/jobslot.h"

#include <QWidget>

class QComboBox;
class QLabel;

namespace klineage::ui {

class DiffView;

/// Two revisions of a card side by side, the newest change first; which ones is chosen above. They are compared off the GUI thread.
class RevisionCompare : public QWidget
{
    Q_OBJECT

public:
    explicit RevisionCompare(QWidget *parent = nullptr);

    void setRecord(const skills::CardRecord &record);
    [[nodiscard]] QString card() const { return m_card; }
    [[nodiscard]] DiffView *diff() const { return m_diff; }
    [[nodiscard]] QComboBox *older() const { return m_older; }
    [[nodiscard]] QComboBox *newer() const { return m_newer; }

signals:
    void closed();

private:
    void compare();

    QString m_card;
    std::vector<skills::Revision> m_revisions;
    QComboBox *m_older;
    QComboBox *m_newer;
    QLabel *m_note;
    DiffView *m_diff;
    JobSlot m_job;
};

} // namespace klineage::ui
