// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QComboBox;

namespace klineage {
struct Workspace;
}

namespace klineage::ui {

/// Names a kernel: a state of a lineage, chosen or typed with completion, or a candidate file.
class KernelBox : public QWidget
{
    Q_OBJECT

public:
    explicit KernelBox(const Workspace &workspace, QWidget *parent = nullptr);

    [[nodiscard]] QString text() const;
    void setText(const QString &text);
    /// The text names a file, of which nobody knows the workload.
    [[nodiscard]] bool isFile() const;
    void setAccessibleNameOfField(const QString &name);

signals:
    void changed();

private:
    void chooseFile();

    QComboBox *m_box;
};

} // namespace klineage::ui
