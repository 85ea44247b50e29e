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
};

} // namespace klineage::ui
