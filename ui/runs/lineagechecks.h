// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QListWidget>

namespace klineage {
struct Workspace;
}

namespace klineage::ui {

/// The workspace's lineages, each with a box to check.
class LineageChecks : public QListWidget
{
    Q_OBJECT

public:
    explicit LineageChecks(const Workspace &workspace, QWidget *parent = nullptr);

    [[nodiscard]] QStringList checked() const;
    void setChecked(const QStringList &keys);
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void showEvent(QShowEvent *event) override; ///< the first checked one is in sight
};

} // namespace klineage::ui
