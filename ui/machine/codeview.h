// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/code/machinecode.h"

#include <QTableView>

namespace klineage::ui {

class CodeModel;

/// A list of machine code. Rows are of one height and painted only where they are seen, so that a long list costs no more than a
/// short one.
class CodeView : public QTableView
{
    Q_OBJECT

public:
    explicit CodeView(QWidget *parent = nullptr);

    void setCode(MachineCodePtr code);
    [[nodiscard]] CodeModel *codeModel() const { return m_model; }

    /// Marks the instructions of a source line and brings the first of them into view; sourceLineChosen() is silent. How many there
    /// are.
    int markLine(int line);
    /// As if somebody had gone there.
    void goToRow(int row);
    /// The selected rows as text, from top to bottom; empty when there are none.
    [[nodiscard]] QString selectedText() const;

signals:
    /// Somebody went to an instruction that comes from this line of the source.
    void sourceLineChosen(int line);

protected:
    void currentChanged(const QModelIndex &current, const QModelIndex &previous) override;
    void resizeEvent(QResizeEvent *event) override;
    bool event(QEvent *event) override;

private:
    void fitColumns();
    void announce(int row);

    CodeModel *m_model;
    bool m_isQuiet = false;
};

} // namespace klineage::ui
