// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runform.h"

#include <QDialog>

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace klineage::ui {

/// Asks for what a run needs, and says what it will cost before it starts.
class StartDialog : public QDialog
{
    Q_OBJECT

public:
    /// root: "sgemm/pocl/K00", chosen at first when there is such a state. The workspace outlives the dialog.
    StartDialog(const Workspace &workspace, const QString &root, QWidget *parent = nullptr);

    /// After it was accepted.
    [[nodiscard]] const run::Settings &settings() const { return m_settings; }
    [[nodiscard]] RunForm form() const;
    void setForm(const RunForm &form);
    [[nodiscard]] QLabel *estimateLabel() const { return m_estimate; }
    [[nodiscard]] QPushButton *startButton() const { return m_start; }

private:
    void layOut();
    void update();

    const Workspace &m_workspace;
    run::Settings m_settings;
    QFormLayout *m_form;
    QComboBox *m_root;
    QComboBox *m_policy;
    QComboBox *m_provider;
    QLineEdit *m_model;
    QLineEdit *m_command;
    QLineEdit *m_baseUrl;
    QLineEdit *m_transcript;
    QDoubleSpinBox *m_cap;
    QSpinBox *m_questions;
    QSpinBox *m_seed;
    QCheckBox *m_heldOut;
    QLabel *m_estimate;
    QPushButton *m_start;
};

} // namespace klineage::ui
