// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/guess/guess.h"

#include <QWidget>

#include <map>
#include <string>
#include <vector>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;

namespace klineage::ui {

/// The part of a plan that a source does not say, field by field, with what is wrong beside the field.
class LaunchForm : public QWidget
{
    Q_OBJECT

public:
    explicit LaunchForm(QWidget *parent = nullptr);

    /// What the source has. Fields keep their texts; arguments of a kernel whose parameters changed keep theirs by place.
    void setOutline(const kernel::SourceOutline &outline, kernel::Surface surface);
    /// Whose tensors and axes are offered; nullptr: none.
    void setWorkload(const workload::Workload *workload);
    /// Fills the fields. why: what each argument rests on, may be empty.
    void setDraft(const workload::PlanDraft &draft, const std::vector<std::string> &why);
    /// What the fields say; without code.
    [[nodiscard]] workload::PlanDraft draft() const;
    [[nodiscard]] std::string kernelName() const;

    void showProblems(const std::vector<workload::FieldProblem> &problems);

signals:
    void edited();
    void kernelChosen();

private:
    struct Argument {
        QLabel *label;
        QComboBox *field;
        QWidget *row;
    };
    struct Constant {
        std::int64_t value;
        QCheckBox *chosen;
        QLineEdit *values;
        QWidget *row;
    };

    QLineEdit *addLine(const QString &label, const QString &name, const QString &field, const QString &hint);
    QWidget *withProblem(QWidget *widget, const std::string &field);
    void dropProblem(const std::string &field);
    void fillArguments();
    void fillConstants();
    void offerChoices(QComboBox *field, const kernel::KernelParameter &parameter) const;

    kernel::SourceOutline m_outline;
    kernel::Surface m_surface;
    const workload::Workload *m_workload = nullptr;
    QFormLayout *m_form;
    QComboBox *m_kernel;
    QLineEdit *m_grid;
    QLineEdit *m_block;
    QLineEdit *m_shared;
    QFormLayout *m_argumentForm;
    QFormLayout *m_constantForm;
    QLabel *m_argumentTitle;
    QLabel *m_constantTitle;
    std::vector<Argument> m_arguments;
    std::vector<Constant> m_constants;
    std::map<std::string, QLabel *> m_problems; ///< by field
    bool m_quiet = false;                       ///< fields are being filled
};

} // namespace klineage::ui
