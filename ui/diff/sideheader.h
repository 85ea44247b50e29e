// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/chain.h"
#include "ui/style/chip.h"

#include <QWidget>

class QLabel;

namespace klineage::ui {

/// What stands above one side: what it is, and what the gate said about it.
struct SideHeading {
    QString label;       ///< "K03"
    QString title;       ///< "shared-memory tiles"
    Chip status;         ///< "correct"; empty text: none
    Chip change;         ///< "gain 2.83× ± 0.1 %"
    QString latency;     ///< "12.0 µs"
    QString beside;      ///< behind it: "beside K04", whose trial timed it; empty: its own
    QString detail;      ///< the verdict in words and where it was measured, as tool tip
    QString samples;     ///< below the rest: how many stall samples it has, or why none; empty: not asked for
    bool pinned = false; ///< the baseline

    friend bool operator==(const SideHeading &, const SideHeading &) = default;
};

/// against: the row at the left, or null. Figures come from the row's trial, and from that of `against`.
[[nodiscard]] SideHeading sideHeading(const lineage::RowRef &row, const lineage::RowRef *against);

/// Of what stands at the left of `right`: where the two were timed in the same rounds, the latency is the one of these rounds, so that
/// the two latencies and the change between them agree, and `beside` says so. The tool tip has its own trial's too.
[[nodiscard]] SideHeading leftHeading(const lineage::RowRef &left, const lineage::RowRef &right);

class SideHeader : public QWidget
{
    Q_OBJECT

public:
    explicit SideHeader(QWidget *parent = nullptr);
    void setHeading(const SideHeading &heading);
    [[nodiscard]] const SideHeading &heading() const { return m_heading; }

protected:
    void paintEvent(QPaintEvent *event) override;
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

private:
    [[nodiscard]] int lineHeight() const;
    SideHeading m_heading;
};

} // namespace klineage::ui
