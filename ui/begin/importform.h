// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/begin/importrunner.h"

#include <QWidget>

#include <vector>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace klineage::ui {

/// A workload that programs of an archive can be of.
struct ImportTarget {
    QString workload;
    QStringList platforms; ///< of its lineages
};

/// What is to be imported, and how: the fields of one kind of import at a time, and the options of klineage-cli that they are. What was typed
/// stays when another kind is shown.
class ImportForm : public QWidget
{
    Q_OBJECT

public:
    explicit ImportForm(QWidget *parent = nullptr);

    /// workload: the one that is chosen when it is one of the targets; else the one that was before.
    void begin(ImportRunner::Kind kind, std::vector<ImportTarget> targets, const QString &workload);
    void setFrom(const QString &path);
    /// Whether there is something to import, and for what.
    [[nodiscard]] bool isComplete() const;
    /// What stands after "import", or after "new" of an operator.
    [[nodiscard]] QStringList arguments(bool isTrial) const;
    /// A sentence of klineage-cli with the names of fields for those of options.
    [[nodiscard]] QString inWordsOfFields(QString sentence) const;

signals:
    void changed();
    void message(const QString &sentence);
    void returnPressed(); ///< in the field of what is imported

private:
    struct Row {
        QWidget *field;
        std::vector<ImportRunner::Kind> kinds; ///< that have it
    };
    void layOut();
    void addRow(const QString &label, QWidget *field, std::vector<ImportRunner::Kind> kinds);
    void choose(bool isFolder);
    void writeTemplate();
    void showPlatforms();

    ImportRunner::Kind m_kind = ImportRunner::Kind::Cards;
    std::vector<ImportTarget> m_targets;
    std::vector<Row> m_rows;
    QFormLayout *m_form;
    QLineEdit *m_from;
    QWidget *m_fromRow;
    QPushButton *m_folder;
    QPushButton *m_file;
    QPushButton *m_template;
    QLineEdit *m_origin;
    QLineEdit *m_license;
    QLineEdit *m_values;
    QSpinBox *m_shapes;
    QComboBox *m_workload;
    QComboBox *m_surface;
    QLineEdit *m_name;
    QComboBox *m_platform;
    QSpinBox *m_most;
    QLineEdit *m_sizes;
    QLineEdit *m_flops;
    QCheckBox *m_replace;
};

} // namespace klineage::ui
