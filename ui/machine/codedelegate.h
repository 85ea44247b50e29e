// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/code/machinecode.h"

#include <QStyledItemDelegate>

namespace klineage::ui {

class CodeModel;

/// Paints a cell of a CodeModel: samples as a bar behind their number, the instruction with its opcode, numbers and labels told apart,
/// the rows of the marked line with a bar at their beginning. The name of a kernel is a heading.
class CodeDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    CodeDelegate(const CodeModel *model, QObject *parent);

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;

private:
    void paintGround(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index,
                     const CodeRow &row) const;
    void paintSamples(QPainter *painter, const QStyleOptionViewItem &option, const CodeRow &row) const;

    const CodeModel *m_model;
};

/// The narrowest that the columns of line and samples may be, so that no number is cut.
[[nodiscard]] int lineColumnWidth(int highestLine);
[[nodiscard]] int samplesColumnWidth();
[[nodiscard]] int codeRowHeight();

} // namespace klineage::ui
