// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/begin/importrunner.h"

#include <QAbstractTableModel>
#include <QDialog>

class QFormLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QTableView;

namespace klineage::ui {

/// What an import did, or would do, a row each.
class ImportModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { StateColumn, NameColumn, SourceColumn, WhyColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;
    void setReport(const ImportReport &report, bool isTrial);
    [[nodiscard]] const ImportReport &report() const { return m_report; }
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    ImportReport m_report;
    bool m_isTrial = false; ///< nothing was written
};

/// Brings problems of other benchmarks, or cards of other libraries, into the workspace: looks first when it is asked to, and says of
/// everything that it passes over why.
class ImportDialog : public QDialog
{
    Q_OBJECT

public:
    explicit ImportDialog(QWidget *parent = nullptr);

    void begin(ImportRunner::Kind kind, const QString &workspace);
    /// As if it had been typed.
    void setFrom(const QString &path);
    void run(bool isTrial);
    [[nodiscard]] bool isRunning() const { return m_runner.isRunning(); }
    [[nodiscard]] ImportModel *model() const { return m_model; }
    [[nodiscard]] QString summary() const;

signals:
    /// Something new is in the workspace.
    void imported();

protected:
    void hideEvent(QHideEvent *event) override;

private:
    void layOut();
    void listen();
    void choose(bool isFolder);
    void onEnded(const ImportReport &report, const QString &problem);
    void showDetail();
    void updateButtons();
    [[nodiscard]] QStringList arguments(bool isTrial) const;

    ImportRunner m_runner;
    ImportModel *m_model;
    ImportRunner::Kind m_kind = ImportRunner::Kind::Cards;
    QString m_workspace;
    bool m_isTrial = false;
    bool m_hasImported = false; ///< since the dialog was opened
    QLabel *m_what;
    QFormLayout *m_form;
    QLineEdit *m_from;
    QWidget *m_fromRow;
    QLineEdit *m_origin;
    QLineEdit *m_license;
    QLineEdit *m_values;
    QSpinBox *m_shapes;
    QTableView *m_table;
    QPlainTextEdit *m_detail;
    QLabel *m_summary;
    QPushButton *m_folder;
    QPushButton *m_file;
    QPushButton *m_look;
    QPushButton *m_import;
    QPushButton *m_stop;
    QPushButton *m_close;
};

} // namespace klineage::ui
