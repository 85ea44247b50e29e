// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/begin/importrunner.h"

#include <QDialog>
#include <QElapsedTimer>
#include <QTimer>

#include <vector>

class QLabel;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QTableView;

namespace klineage::ui {

class ImportForm;
class ImportModel;
struct ImportTarget;

/// Brings problems of other benchmarks, cards of other libraries, or what a search of another system found, into the workspace: looks first
/// when it is asked to, says of everything that it passes over why, and of a lineage how it is gated.
class ImportDialog : public QDialog
{
    Q_OBJECT

public:
    explicit ImportDialog(QWidget *parent = nullptr);

    /// targets: the workloads that there are, which archives alone need, and the one that is looked at.
    void begin(ImportRunner::Kind kind, const QString &workspace, std::vector<ImportTarget> targets,
               const QString &workload);
    /// As if it had been typed.
    void setFrom(const QString &path);
    void run(bool isTrial);
    [[nodiscard]] bool isRunning() const { return m_runner.isRunning(); }
    [[nodiscard]] ImportModel *model() const { return m_model; }
    [[nodiscard]] QString summary() const;

signals:
    /// Something new is in the workspace; lineage: its key, where it is one.
    void imported(const QString &lineage);

protected:
    void hideEvent(QHideEvent *event) override;

private:
    void layOut();
    void layOutNext();
    void listen();
    void onEnded(const ImportReport &given, const QString &problem);
    void showElapsed();
    void showNext(const ImportReport &report);
    void showDetail();
    void updateButtons();
    void tellImported();
    [[nodiscard]] QString said(const ImportReport &report) const;
    [[nodiscard]] ImportReport inWordsOfFields(ImportReport report) const;

    ImportRunner m_runner;
    ImportModel *m_model;
    ImportRunner::Kind m_kind = ImportRunner::Kind::Cards;
    QString m_workspace;
    QString m_lineage; ///< that was imported since the dialog was opened
    bool m_isTrial = false;
    bool m_hasImported = false; ///< since the dialog was opened
    QElapsedTimer m_elapsed;
    QTimer m_second;
    QLabel *m_what;
    ImportForm *m_form;
    QTableView *m_table;
    QPlainTextEdit *m_detail;
    QWidget *m_next; ///< shown once there is a lineage
    QLabel *m_whyNext;
    QPlainTextEdit *m_commands;
    QPushButton *m_copy;
    QLabel *m_summary;
    QProgressBar *m_busy;
    QPushButton *m_look;
    QPushButton *m_import;
    QPushButton *m_stop;
    QPushButton *m_close;
};

} // namespace klineage::ui
